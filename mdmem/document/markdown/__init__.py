"""What stands in a Markdown text: blocks, links, citations and sentences."""
