# Two threads take two locks in opposite orders; with "fixed" in one order.
import sys
import threading

fixed = len(sys.argv) > 1
first, second = threading.Lock(), threading.Lock()


def work(one, other):
    one.acquire()
    other.acquire()
    other.release()
    one.release()


orders = [(first, second), (first, second) if fixed else (second, first)]
threads = [threading.Thread(target=work, args=order) for order in orders]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
