"""Which pictures of people, models and plugins clients get; every layer above may import it.

The gateway serves none of them: a picture inside an address reaches browsers as a value of JSON. It keeps
only pictures whose bytes are of the type that they claim, and no SVG, which a browser runs when it opens the
address.
"""
