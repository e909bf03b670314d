# Two buyers look whether something is left and take it; with "fixed" they do so under a lock.
import contextlib
import sys
import threading

fixed = len(sys.argv) > 1
lock = threading.Lock() if fixed else contextlib.nullcontext()
stock = {"apple": 1}
sold = []


def buy(who):
    with lock:
        if stock["apple"] > 0:
            sold.append(who)
            stock["apple"] -= 1


buyers = [threading.Thread(target=buy, args=(number,)) for number in range(2)]
for buyer in buyers:
    buyer.start()
for buyer in buyers:
    buyer.join()
assert len(sold) == 1, f"sold {len(sold)} of 1"
