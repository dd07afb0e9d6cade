"""Wire formats: what other programs send and expect, a module each, all read into the one `Request`."""
