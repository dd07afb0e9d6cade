"""Counted work, instead of measured time.

- `meter`: how much work was done, and how many units does each kind of work count?
- `work_budget`: how much work may a search do, and when must it stop?
"""
