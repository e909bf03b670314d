/* Handlers that stop themselves without waiting, and others that wait for them. */
struct oven { struct delayed_work heat; struct timer_list bell; void *regs; int degrees; int irq; };

/* The callers say whether they run in the work itself. */
static void oven_off(struct oven *o, bool in_work)
{
	if (!in_work)
		cancel_delayed_work_sync(&o->heat);
	o->degrees = 0;
}

static void oven_heat(struct work_struct *work)
{
	struct oven *o = container_of(work, struct oven, heat.work);

	if (o->degrees > 250) {
		cancel_delayed_work(&o->heat);
		oven_off(o, true);
		return;
	}
	schedule_delayed_work(&o->heat, HZ);
}

static void oven_bell(struct timer_list *t)
{
	struct oven *o = from_timer(o, t, bell);

	cancel_delayed_work(&o->heat);
	del_timer(&o->bell);
}

static irqreturn_t oven_door(int irq, void *data)
{
	struct oven *o = data;

	disable_irq_nosync(o->irq);
	return IRQ_HANDLED;
}

int oven_setup(struct oven *o)
{
	INIT_DELAYED_WORK(&o->heat, oven_heat);
	timer_setup(&o->bell, oven_bell, 0);
	return request_irq(o->irq, oven_door, 0, "oven", o);
}

void oven_end(struct oven *o)
{
	free_irq(o->irq, o);
	del_timer_sync(&o->bell);
	oven_off(o, false);
}
