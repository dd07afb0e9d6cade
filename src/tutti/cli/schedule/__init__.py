"""`tutti schedule`: prints where pending pods go; the use case is `app.schedule`, its table `present.plan_table`.

- `command`          Which options are there, and what is printed in which format?
- `what_if_options`  How do --add, --scale, --cordon and --drain become a what-if? (`app.what_if` makes it edits.)
"""
