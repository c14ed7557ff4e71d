"""Links that work once: invitations, and sign-in links of one account.

A link has a random token of 256 bits, of which only the SHA-256 is stored. The token is in the fragment of
the address, which browsers send to no server and a mail scanner does not use up; a POST uses the link.
"""
