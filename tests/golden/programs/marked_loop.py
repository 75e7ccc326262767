"""A loop that only a comment says is one to stop at."""

import somewhere

state = somewhere.make()
total = 0
# detrain: loop
for number in range(100):
    result = somewhere.advance(state, number)
    total = total + result.score
print(total)
