"""The nouns `function` and `tool`: two families of plugins with the same verbs."""
