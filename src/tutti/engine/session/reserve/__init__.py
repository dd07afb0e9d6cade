"""Reservations: room that is held where a starving turn will be able to start.

- `reservations`      who gets the reservation, who may use its room, and when does it pass on?
- `reservation_plan`  where and when will a turn be able to start?
- `expected_ends`     in which order are running pods expected to end?
"""
