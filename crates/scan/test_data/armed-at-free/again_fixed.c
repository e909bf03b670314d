/* The transfers are killed before the work that they start is cancelled. */
struct radio {
	struct usb_device *dev;
	struct usb_anchor rx_anchor;
	struct delayed_work rx_work;
	int packets;
};

struct panel {
	struct usb_device *dev;
	struct urb *status;
	struct work_struct report;
	int packets;
};

static void radio_rx_work(struct work_struct *work)
{
	struct radio *r = container_of(work, struct radio, rx_work.work);

	r->packets--;
}

static void panel_report(struct work_struct *work)
{
	struct panel *p = container_of(work, struct panel, report);

	p->packets = 0;
}

static void radio_rx_complete(struct urb *urb)
{
	struct radio *r = urb->context;

	schedule_delayed_work(&r->rx_work, 1);
}

static void panel_status_complete(struct urb *urb)
{
	struct panel *p = urb->context;

	schedule_work(&p->report);
}

void radio_setup(struct radio *r, struct panel *p, struct urb *urb, void *buffer)
{
	INIT_DELAYED_WORK(&r->rx_work, radio_rx_work);
	INIT_WORK(&p->report, panel_report);
	usb_fill_bulk_urb(urb, r->dev, 0, buffer, 64, radio_rx_complete, r);
	usb_anchor_urb(urb, &r->rx_anchor);
	usb_fill_int_urb(p->status, p->dev, 0, buffer, 8, panel_status_complete, p, 1);
}

static void radio_stop_traffic(struct radio *r)
{
	usb_kill_anchored_urbs(&r->rx_anchor);
}

void radio_close(struct radio *r)
{
	radio_stop_traffic(r);
	cancel_delayed_work_sync(&r->rx_work);
}

/* Ended once more behind what starts it. */
void panel_mute(struct panel *p)
{
	cancel_work_sync(&p->report);
	usb_kill_urb(p->status);
	cancel_work_sync(&p->report);
}
