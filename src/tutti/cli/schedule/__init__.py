"""`tutti schedule`; the use case is `app.schedule`, its table `present.plan_table`.

- `command`          the click command
- `what_if_options`  --add, --scale, --cordon and --drain as a what-if; `app.what_if` turns it into edits
"""
