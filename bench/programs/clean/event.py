# An event hands a value over.
import threading

ready = threading.Event()
value = []


def give():
    value.append(4)
    ready.set()


thread = threading.Thread(target=give)
thread.start()
ready.wait()
assert value == [4]
thread.join()
