"""The options of AWS Glue, with Hudi's keys."""

from eventide_core.config.option import TEXT, Option

GLUE_REGION = Option(
    "hoodie.aws.glue.region",
    TEXT,
    None,
    "The AWS region of the catalog.",
    otherwise="the environment's or the profile's, else us-east-1",
)
GLUE_ENDPOINT = Option(
    "hoodie.aws.glue.endpoint",
    TEXT,
    None,
    "The URL of the Glue service.",
    otherwise="Amazon's in the region",
)
