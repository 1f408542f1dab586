locals {
  # The backends: the shared functions, the console, and the dedicated customers' own.
  backends = merge(
    { for function, service in var.functions : "fn-${function}" => { service = service, customer = null } },
    { for c in var.console[*] : "fn-console" => { service = c.service, customer = null } },
    [for name, c in var.customers : {
      for function, service in c.services : "customer-${name}-${function}" => { service = service, customer = name }
    }]...
  )

  # A group for each backend and region. Those of the first region have the names that they
  # had when there was no other.
  groups = merge(
    { for key, b in local.backends : key => { backend = key, service = b.service, region = var.region, name = key } },
    [for region in var.more_regions : {
      for key, b in local.backends : "${key}/${region}" => { backend = key, service = b.service, region = region, name = "${substr(sha256(region), 0, 4)}-${key}" }
    }]...
  )

  # The path matchers, each with its host, its own functions, and the function of other paths. That
  # of the console has no other.
  matchers = merge(
    { for host in var.default_host[*] : "default" => { host = host, own = [], customer = "-", fallback = var.fallback_function } },
    { for name, c in var.customers : "customer-${name}" => { host = c.host, own = keys(c.services), customer = c.app_id, fallback = var.fallback_function } },
    { for c in var.console[*] : "console" => { host = c.host, own = [], customer = "-", fallback = "console" } },
  )

  # Keyed by host, not by customer: a changed host gets a second certificate, because
  # one in use cannot be deleted.
  hosts = { for m in values(local.matchers) : m.host => "${var.name_prefix}-${substr(replace(m.host, ".", "-"), 0, 30)}-${substr(sha256(m.host), 0, 6)}" }

  # Priorities do not change when customers are added or removed: with consecutive
  # ones, a customer's rule would be missing while it moves.
  priorities = { for name in keys(var.customers) : name => 1000 + parseint(substr(sha256(name), 0, 7), 16) }
}

resource "google_compute_global_address" "this" {
  name        = "${var.name_prefix}-edge"
  description = "Where the hosts of the engine point to."
}

resource "google_compute_region_network_endpoint_group" "this" {
  for_each = local.groups

  # The service is part of the name, so that another service gets another group while
  # the old one is in use.
  name                  = "${var.name_prefix}-${each.value.name}-${substr(sha256(each.value.service), 0, 4)}"
  region                = each.value.region
  network_endpoint_type = "SERVERLESS"

  cloud_run {
    service = each.value.service
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "google_compute_backend_service" "this" {
  for_each = local.backends

  name                  = "${var.name_prefix}-${each.key}"
  description           = each.value.customer == null ? "Serves all apps." : "Serves the customer ${each.value.customer} alone."
  load_balancing_scheme = "EXTERNAL_MANAGED"
  protocol              = "HTTPS"
  security_policy       = google_compute_security_policy.this.id

  # The country of the client, by which users may begin in a region of their own. It takes the place of what a client sends.
  custom_request_headers = ["X-Client-Geo-Region:{client_region}"]

  # Browsers never call the host without TLS after one answer. The engine's other
  # headers of this kind come from its functions.
  custom_response_headers = ["Strict-Transport-Security: max-age=31536000"]

  dynamic "backend" {
    for_each = [for key, g in local.groups : key if g.backend == each.key]
    content {
      group = google_compute_region_network_endpoint_group.this[backend.value].id
    }
  }

  log_config {
    enable      = var.log_sample_rate > 0
    sample_rate = var.log_sample_rate > 0 ? var.log_sample_rate : null
  }

  # Serverless groups have no health checks. A proxy leaves the group of a region out for half a minute after five
  # failures in a row, never more than half of the regions.
  dynamic "outlier_detection" {
    for_each = length(var.more_regions) > 0 ? [1] : []
    content {
      consecutive_errors           = 5
      enforcing_consecutive_errors = 100
      max_ejection_percent         = 50

      interval {
        seconds = 10
      }
      base_ejection_time {
        seconds = 30
      }
    }
  }

  # An old backend is deleted after the URL map has stopped using it.
  lifecycle {
    create_before_destroy = true
  }
}

resource "google_compute_url_map" "this" {
  name            = "${var.name_prefix}-edge"
  description     = "A host and its path matcher for every customer; a path's function is the longest that fits."
  default_service = google_compute_backend_service.this["fn-${var.fallback_function}"].id

  # Which commit answers: to clients, and to docs, which says it at /health.
  dynamic "header_action" {
    for_each = var.release[*]
    content {
      request_headers_to_add {
        header_name  = "X-Affinity-Release"
        header_value = header_action.value
        replace      = true
      }
      response_headers_to_add {
        header_name  = "X-Affinity-Release"
        header_value = header_action.value
        replace      = true
      }
    }
  }

  dynamic "host_rule" {
    for_each = local.matchers
    content {
      hosts        = [host_rule.value.host]
      path_matcher = host_rule.key
    }
  }

  dynamic "path_matcher" {
    for_each = local.matchers
    iterator = matcher
    content {
      name            = matcher.key
      default_service = google_compute_backend_service.this[contains(matcher.value.own, matcher.value.fallback) ? "${matcher.key}-${matcher.value.fallback}" : "fn-${matcher.value.fallback}"].id

      # The functions go by this header, whatever a client or a proxy put into Host.
      header_action {
        request_headers_to_add {
          header_name  = "X-Affinity-Customer"
          header_value = matcher.value.customer
          replace      = true
        }
      }

      dynamic "path_rule" {
        for_each = { for function, paths in var.routes : function => paths if matcher.key != "console" }
        content {
          paths   = flatten([for p in path_rule.value : [p, "${p}/*"]])
          service = google_compute_backend_service.this[contains(matcher.value.own, path_rule.key) ? "${matcher.key}-${path_rule.key}" : "fn-${path_rule.key}"].id
        }
      }
    }
  }
}

# Without a policy Google's load balancer accepts TLS 1.0 and 1.1.
resource "google_compute_ssl_policy" "this" {
  name            = "${var.name_prefix}-tls"
  description     = "TLS 1.2 and later, with modern ciphers."
  profile         = "MODERN"
  min_tls_version = "TLS_1_2"
}

resource "google_compute_target_https_proxy" "this" {
  name            = "${var.name_prefix}-https"
  url_map         = google_compute_url_map.this.id
  ssl_policy      = google_compute_ssl_policy.this.id
  certificate_map = "//certificatemanager.googleapis.com/${google_certificate_manager_certificate_map.this.id}"
}

resource "google_compute_global_forwarding_rule" "https" {
  name                  = "${var.name_prefix}-https"
  load_balancing_scheme = "EXTERNAL_MANAGED"
  ip_address            = google_compute_global_address.this.id
  port_range            = "443"
  target                = google_compute_target_https_proxy.this.id
}

# Nothing listens on port 80: by the time a redirect answers, a client has sent its key and its
# events in the clear.
resource "google_compute_global_address" "ipv6" {
  name        = "${var.name_prefix}-edge-ipv6"
  description = "Where the hosts of the engine point to, for clients with IPv6."
  ip_version  = "IPV6"
}

resource "google_compute_global_forwarding_rule" "ipv6" {
  name                  = "${var.name_prefix}-https-ipv6"
  load_balancing_scheme = "EXTERNAL_MANAGED"
  ip_address            = google_compute_global_address.ipv6.id
  port_range            = "443"
  target                = google_compute_target_https_proxy.this.id
}
