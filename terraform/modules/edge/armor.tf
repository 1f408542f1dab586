resource "google_compute_security_policy" "this" {
  name        = "${var.name_prefix}-edge"
  description = "Limits the requests of one address to each host, and refuses requests to other hosts."
  type        = "CLOUD_ARMOR"

  dynamic "rule" {
    for_each = var.customers
    content {
      description = "customer ${rule.key}"
      priority    = local.priorities[rule.key]
      action      = "throttle"

      match {
        expr {
          expression = "request.headers['host'].lower() == '${rule.value.host}' || request.headers['host'].lower() == '${rule.value.host}:443'"
        }
      }

      rate_limit_options {
        conform_action = "allow"
        exceed_action  = "deny(429)"
        enforce_on_key = "IP"

        rate_limit_threshold {
          count        = rule.value.rate_limit
          interval_sec = 60
        }
      }
    }
  }

  dynamic "rule" {
    for_each = var.console[*]
    content {
      description = "console"
      priority    = 2147483645
      action      = "throttle"

      match {
        expr {
          expression = "request.headers['host'].lower() == '${rule.value.host}' || request.headers['host'].lower() == '${rule.value.host}:443'"
        }
      }

      rate_limit_options {
        conform_action = "allow"
        exceed_action  = "deny(429)"
        enforce_on_key = "IP"

        rate_limit_threshold {
          count        = rule.value.rate_limit
          interval_sec = 60
        }
      }
    }
  }

  dynamic "rule" {
    for_each = var.default_host[*]
    content {
      description = "default host"
      priority    = 2147483646
      action      = "throttle"

      match {
        expr {
          expression = "request.headers['host'].lower() == '${rule.value}' || request.headers['host'].lower() == '${rule.value}:443'"
        }
      }

      rate_limit_options {
        conform_action = "allow"
        exceed_action  = "deny(429)"
        enforce_on_key = "IP"

        rate_limit_threshold {
          count        = var.default_rate_limit
          interval_sec = 60
        }
      }
    }
  }

  rule {
    description = "no host of ours"
    priority    = 2147483647
    action      = "deny(404)"

    match {
      versioned_expr = "SRC_IPS_V1"
      config {
        src_ip_ranges = ["*"]
      }
    }
  }

  lifecycle {
    precondition {
      condition     = length(distinct(values(local.priorities))) == length(local.priorities)
      error_message = "The names of these customers give their rules the same priority. Rename one customer: ${join(", ", [for name, p in local.priorities : name if length([for q in values(local.priorities) : q if q == p]) > 1])}."
    }
  }
}
