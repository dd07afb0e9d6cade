"""Tests of the fault harness in tests/controlplane/faults that need no control plane."""
