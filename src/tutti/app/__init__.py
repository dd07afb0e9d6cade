"""The use cases, without terminal, socket or clock; commands, servers and the Python API call them."""
