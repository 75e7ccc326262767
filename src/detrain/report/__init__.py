"""What was found, shown: text for people, JSON and SARIF for machines. Values in, text out."""
