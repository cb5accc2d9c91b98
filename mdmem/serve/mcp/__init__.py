"""The server of the Model Context Protocol: the façade's verbs as tools, memories as resources, prompts."""
