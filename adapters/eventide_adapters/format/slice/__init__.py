"""What the files of a slice contain, and what they contain together. Imports `encoding` and `timeline`.

comparison     what differs between views of a slice
log_content    what log files contain, for the planner
merge          log files onto their base, by columns
log_file       log blocks and their content
base_file      base files
"""
