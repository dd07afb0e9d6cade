"""`tutti recommend`; the use case is `app.recommend`.

- `command`       the click command: options, printing, exit code
- `down_options`  --down and its settings
- `inputs`        the files of -f, --pools and --prices as a request
- `advice`        -o advice: a ScalingAdvice of gardener/scaling-advisor
- `write_report`  --report: writes the page that `present.report` draws
"""
