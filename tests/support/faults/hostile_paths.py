"""Hostile strings in place of paths, which try to make a service leave the table or delete needed files.

`{}` is replaced by the proper value: a partition, or the name of a file in it.
"""

_DOTS = ("..", "../..", "../../..", "./..", ".././..", "a/..", "a/../..", "a/b/../../..", "part=a/..", "part=a/../..")
_UP = tuple(f"{dots}/{{}}" for dots in _DOTS)
_LOOK_ALIKES = (
    "\u2024\u2024",  # one dot leaders
    "\u2025",  # two dot leader
    "\u2026",
    "\uff0e\uff0e",  # full width
    "\ufe52\ufe52",
    "\u3002\u3002",
    "\u00b7\u00b7",
    "\u0701\u0701",
    "\u066b\u066b",
    ".\u200b.",
    ".\u200d.",
    ".\u2060.",
    ".\ufeff.",
    ".\u00ad.",
    ".\u0307.",
    "\u202e..",
    "\u2066..",
    "\ufeff..",
)
_SLASHES = ("\u2044", "\u2215", "\uff0f", "\u29f8", "\u1735", "\u338e", "\uff3c", "\u29f5", "\u2216")
_ENCODED = (
    "%2e%2e",
    "%2E%2E",
    "%252e%252e",
    "%c0%ae%c0%ae",
    "%u002e%u002e",
    "\\u002e\\u002e",
    "\\x2e\\x2e",
    "&#46;&#46;",
    "=2E=2E",
    "..%2f",
    "..%5c",
    "..%00",
)

HOSTILE: dict[str, tuple[str, ...]] = {
    "dots": (
        *_DOTS,
        *_UP,
        ".",
        "./",
        "./{}",
        "a/./{}",
        "{}/..",
        "{}/.",
        "{}/../{}",
        "..{}",
        "{}..",
        "..//{}",
        ".../{}",
    ),
    "absolute": (
        "/",
        "//",
        "/{}",
        "//{}",
        "///{}",
        "/etc/passwd",
        "//host/share/{}",
        "/proc/self/environ",
        "/dev/null",
    ),
    "scheme": tuple(
        f"{scheme}{{}}"
        for scheme in (
            "file:",
            "file:/",
            "file://",
            "file:///",
            "s3://bucket/",
            "s3a://bucket/",
            "hdfs://host:8020/",
            "webhdfs://host/",
            "http://host/",
            "https://user:password@host/",
            "jar:file:/",
            "data:,",
            "FILE:/",
            "a+b-c.d:",
            "C:",
            "C:/",
            "c:\\",
        )
    ),
    "home and shell": (
        "~",
        "~/{}",
        "~root/{}",
        "$HOME/{}",
        "${HOME}/{}",
        "`id`/{}",
        "$(id)",
        "*",
        "?",
        "{}*",
        "[a-z]",
        "-rf",
    ),
    "NUL": ("\0", "\0{}", "{}\0", "{}\0.parquet", "a\0/{}", "../\0{}", "{}/\0"),
    "control": (
        *(f"{{}}{character}" for character in "\x01\x07\b\t\n\v\f\r\x1b\x7f\x80\x85\x9b\u2028\u2029"),
        *("\n{}", "\r\n{}", "\x1b[2J{}", "{}\n{}", "..\n/{}", "\n../{}"),
    ),
    "back-slash": (
        "\\",
        "\\{}",
        "..\\{}",
        "..\\..\\{}",
        "part=a\\..\\..\\{}",
        "\\\\host\\share\\{}",
        "{}\\..",
        "a\\{}",
        "\\\\?\\C:\\{}",
    ),
    "encoded": (
        *(f"{text}/{{}}" for text in _ENCODED),
        *("{}%00", "{}%2f..", "%2fetc%2fpasswd", "%{}", "{}%", "{}?x=1", "{}#x"),
    ),
    "look-alikes": (
        *(f"{text}/{{}}" for text in _LOOK_ALIKES),
        *(f"..{slash}{{}}" for slash in _SLASHES),
        *("e\u0301/{}", "\u00e9/{}", "\ufb01/{}", "\u212b/{}", "\u0131/{}", "{}\u0300"),
    ),
    "half characters": ("\ud800", "{}\udfff", "\udc00/{}", "\ud83d{}", "{}\udc2e"),
    "long": (
        "a" * 256,
        "a" * 5000,
        "{}" + "a" * 300,
        "a" * 5000 + "/{}",
        "/".join("a" * 3000),
        "../" * 2000 + "{}",
        "é" * 200 + "{}",
    ),
    "empty parts": ("{}/", "{}//", "a//{}", "//a", "/ {}", "a/ /{}", "{}/ ", "a///{}"),
    "trailing": (
        "{}.",
        "{}...",
        "{} ",
        " {}",
        "{}\u00a0",
        "{}\u3000",
        ". /{}",
        ".. /{}",
        " ../{}",
        "..\t/{}",
        "{}~",
        "{}.bak",
    ),
    "of .hoodie": (
        ".hoodie",
        ".hoodie/{}",
        ".hoodie/timeline/{}",
        ".hoodie/metadata/files/{}",
        ".hoodie/hoodie.properties",
        ".hoodie/.temp/{}",
        ".hoodie/.heartbeat/20261121000000000",
        ".hoodie/archived/{}",
        "a/.hoodie/{}",
        "part=a/.hoodie",
        "hoodie.properties",
        ".hoodie_partition_metadata",
        "part=a/.hoodie_partition_metadata",
    ),
    "other places of the table": ("part=b", "part=b/{}", "part=a/part=b/{}", "", "a", "PART=A", "part=A/{}", "{}/{}"),
    "nothing at all": (
        " ",
        "\u200b",
        "null",
        "None",
        "NaN",
        "{{}}",
        "[]",
        "0",
        "-1",
        "%",
        "\ufffd",
        "\U0010ffff",
        "\uffff",
        "CON",
        "NUL",
        "aux.parquet",
        ".log.1",
        ".parquet",
        "_.parquet",
        "__.parquet",
        "x_0-0-0_20261121000000000.parquet.crc",
        ".x_20261121000000000.log.",
        ".x_20261121000000000.log.-1",
        ".x_20261121000000000.log.1_0-1-0.tmp",
    ),
}
"""The strings by what they try."""


def filled(text: str, name: str) -> str:
    """The string with the proper value in place of `{}`."""
    return text.replace("{}", name)


ALL = tuple(text for texts in HOSTILE.values() for text in texts)
