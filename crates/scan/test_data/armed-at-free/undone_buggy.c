struct work_struct { int data; };
struct mat { struct work_struct refresh; int state; };

static void mat_refresh(struct work_struct *work)
{
	struct mat *m = container_of(work, struct mat, refresh);

	m->state++;
}

static irqreturn_t mat_irq(int irq, void *data)
{
	struct mat *m = data;

	schedule_work(&m->refresh); //~ armed-at-free
	return IRQ_HANDLED;
}

/* Cancelled where the set-up fails and where the device sleeps, but not where it goes. */
static int mat_probe(struct platform_device *pdev)
{
	struct mat *m = devm_kzalloc(&pdev->dev, sizeof(*m), GFP_KERNEL);
	int rc;

	INIT_WORK(&m->refresh, mat_refresh);
	platform_set_drvdata(pdev, m);
	rc = devm_request_irq(&pdev->dev, 1, mat_irq, 0, "mat", m);
	if (rc)
		cancel_work_sync(&m->refresh);
	return rc;
}

static int mat_suspend(struct platform_device *pdev)
{
	struct mat *m = platform_get_drvdata(pdev);

	cancel_work_sync(&m->refresh);
	return 0;
}

static int mat_remove(struct platform_device *pdev)
{
	struct mat *m = platform_get_drvdata(pdev);

	m->state = 0;
	return 0; //~ armed-at-free
}

static struct platform_driver mat_driver = { .probe = mat_probe, .remove = mat_remove, .suspend = mat_suspend };
