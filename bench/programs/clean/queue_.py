# A queue with an end mark.
import queue
import threading

jobs = queue.Queue()
done = []


def work():
    while (job := jobs.get()) is not None:
        done.append(job * 2)


thread = threading.Thread(target=work)
thread.start()
for job in (1, 2, 3, None):
    jobs.put(job)
thread.join()
assert done == [2, 4, 6]
