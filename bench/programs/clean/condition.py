# A condition that is waited for with a predicate.
import threading

condition = threading.Condition()
stage = 0


def step():
    global stage
    with condition:
        stage = 1
        condition.notify_all()


thread = threading.Thread(target=step)
thread.start()
with condition:
    condition.wait_for(lambda: stage == 1)
thread.join()
assert stage == 1
