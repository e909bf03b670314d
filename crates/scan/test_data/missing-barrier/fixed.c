/* With the barrier; with the operation that has one. */
struct object {
	unsigned long flags;
};

#define OBJECT_BUSY 0

void object_done(struct object *o)
{
	clear_bit(OBJECT_BUSY, &o->flags);
	smp_mb__after_atomic();
	wake_up_bit(&o->flags, OBJECT_BUSY);
}

void object_unlock(struct object *o)
{
	clear_and_wake_up_bit(OBJECT_BUSY, &o->flags);
}
