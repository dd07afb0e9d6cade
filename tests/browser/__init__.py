"""Pages looked at in a real browser: Debian's package chromium. Without it these tests are skipped."""
