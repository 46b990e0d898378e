"""Records how the fixed window of Python's limits decides, under a clock that this program drives.

    pip install limits==5.8.0 && python record.py > limits-5.8.0.jsonl

A line is a scenario of one key. Times are eighths of a second, which floats hold: t0, and for each hit the time since, whether it was
admitted, what remains, and the time until the window ends.
"""
import json
import random
from unittest import mock

import limits
from limits.storage.memory import MemoryStorage
from limits.strategies import FixedWindowRateLimiter

SECOND = 8
draw = random.Random(58)
clock = [0.0]


def scenario():
    seconds, amount = draw.choice([1, 2, 10, 60, 3600, 86400]), draw.choice([1, 2, 3, 5, 10])
    limiter, item = FixedWindowRateLimiter(MemoryStorage()), limits.RateLimitItemPerSecond(amount, seconds)
    began = now = draw.randrange(10**9) * SECOND
    hits, end = [], None
    for _ in range(40):
        kind = draw.random()
        if kind < 0.4:
            pass
        elif kind < 0.6 and end is not None and end > now:
            now = end - draw.choice([0, 0, 1])
        elif kind < 0.9:
            now += draw.randrange(seconds * SECOND // 3 + 2)
        else:
            now += draw.randrange(3 * seconds * SECOND)
        clock[0] = now / SECOND
        admitted = limiter.hit(item)
        reset, remaining = limiter.get_window_stats(item)
        end = round(reset * SECOND)
        hits.append([now - began, int(admitted), remaining, end - now])
    return {"limit": amount, "seconds": seconds, "t0": began, "ops": hits}


with mock.patch("limits.storage.memory.threading.Timer"), mock.patch("limits.storage.memory.time") as time:
    time.time = lambda: clock[0]
    for _ in range(200):
        print(json.dumps(scenario(), separators=(",", ":")))
