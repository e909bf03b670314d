# Two threads count under a lock.
import threading

lock = threading.Lock()
count = 0


def add():
    global count
    for _ in range(3):
        with lock:
            count += 1


threads = [threading.Thread(target=add) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert count == 6
