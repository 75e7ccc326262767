"""The programs are read by the tests and never imported, whatever their names."""

collect_ignore = ["programs"]
