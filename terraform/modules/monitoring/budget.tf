# A budget does not stop anything: it sends mail. Google sends it to the billing
# account's administrators, and here also to alert_email.
resource "google_billing_budget" "this" {
  count = var.budget == null ? 0 : 1

  billing_account = var.budget.billing_account
  display_name    = "${var.name_prefix}: ${var.budget.project_id}"

  budget_filter {
    projects = ["projects/${var.budget.project_number}"]
  }

  # In the currency of the billing account.
  amount {
    specified_amount {
      units = tostring(var.budget.amount)
    }
  }

  dynamic "threshold_rules" {
    for_each = [0.5, 0.9, 1]
    content {
      threshold_percent = threshold_rules.value
      spend_basis       = "CURRENT_SPEND"
    }
  }

  threshold_rules {
    threshold_percent = 1
    spend_basis       = "FORECASTED_SPEND"
  }

  dynamic "all_updates_rule" {
    for_each = length(local.channels) == 0 ? [] : [local.channels]
    content {
      monitoring_notification_channels = all_updates_rule.value
    }
  }
}
