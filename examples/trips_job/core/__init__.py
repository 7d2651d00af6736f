"""The job's own rules. The directory may be called `core`: eventide's packages have other names."""
