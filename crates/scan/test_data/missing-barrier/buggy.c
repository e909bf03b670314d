/* A bit lock whose release may be seen too late. */
struct object {
	unsigned long flags;
};

#define OBJECT_BUSY 0

void object_done(struct object *o)
{
	clear_bit(OBJECT_BUSY, &o->flags); //~ missing-barrier
	wake_up_bit(&o->flags, OBJECT_BUSY);
}
