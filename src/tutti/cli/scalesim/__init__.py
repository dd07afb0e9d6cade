"""`tutti scalesim`; the use case is `app.simulate_scaling`, its text `present.scaling_simulation_text`.

- `command`  the click command
- `client`   asks a recommender over HTTP
"""
