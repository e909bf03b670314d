/* Handlers that wait for their own end. */
struct oven { struct delayed_work heat; struct timer_list bell; void *regs; int degrees; int irq; };

static void oven_heat(struct work_struct *work)
{
	struct oven *o = container_of(work, struct oven, heat.work);

	if (o->degrees > 250) {
		cancel_delayed_work_sync(&o->heat); //~ wait-for-handler
		o->degrees = 0;
		return;
	}
	schedule_delayed_work(&o->heat, HZ);
}

static void oven_bell(struct timer_list *t)
{
	struct oven *o = from_timer(o, t, bell);

	del_timer_sync(&o->bell); //~ wait-for-handler
}

static irqreturn_t oven_door(int irq, void *data)
{
	struct oven *o = data;

	disable_irq(o->irq); //~ wait-for-handler sleep-in-atomic
	return IRQ_HANDLED;
}

int oven_setup(struct oven *o)
{
	INIT_DELAYED_WORK(&o->heat, oven_heat);
	timer_setup(&o->bell, oven_bell, 0);
	return request_irq(o->irq, oven_door, 0, "oven", o);
}
