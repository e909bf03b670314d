struct work_struct { int data; };
struct pad { struct work_struct refresh; int state; };

static void pad_refresh(struct work_struct *work)
{
	struct pad *p = container_of(work, struct pad, refresh);

	p->state++;
}

static irqreturn_t pad_irq(int irq, void *data)
{
	struct pad *p = data;

	schedule_work(&p->refresh); //~ armed-at-free
	return IRQ_HANDLED;
}

static int pad_probe(struct platform_device *pdev)
{
	struct pad *p = devm_kzalloc(&pdev->dev, sizeof(*p), GFP_KERNEL);

	INIT_WORK(&p->refresh, pad_refresh);
	platform_set_drvdata(pdev, p);
	return devm_request_irq(&pdev->dev, 1, pad_irq, 0, "pad", p);
}

static int pad_remove(struct platform_device *pdev)
{
	struct pad *p = platform_get_drvdata(pdev);

	p->state = 0;
	return 0; //~ armed-at-free
}

static struct platform_driver pad_driver = { .probe = pad_probe, .remove = pad_remove };
