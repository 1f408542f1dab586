# The whole edge of three customers: one shared, one dedicated, and the default
# host beside them.

mock_provider "google" {
  mock_resource "google_certificate_manager_dns_authorization" {
    defaults = {
      dns_resource_record = [{ name = "_acme-challenge.example.com.", type = "CNAME", data = "1.authorize.certificatemanager.goog." }]
    }
  }

  mock_resource "google_certificate_manager_certificate_map" {
    defaults = { id = "projects/p/locations/global/certificateMaps/affinity-edge" }
  }

  mock_resource "google_compute_global_address" {
    defaults = { address = "203.0.113.7" }
  }
}

variables {
  region       = "europe-west1"
  default_host = "api.example.com"
  functions = {
    ingest     = "affinity-ingest"
    imports    = "affinity-imports"
    profiles   = "affinity-profiles"
    strategies = "affinity-strategies"
    catalog    = "affinity-catalog"
    recomputes = "affinity-recomputes"
    docs       = "affinity-docs"
  }
  customers = {
    acme = { host = "acme.example.com", app_id = "ACME", rate_limit = 1200 }
    globex = {
      host       = "events.globex.example"
      app_id     = "GLOBEX"
      dedicated  = true
      rate_limit = 60000
      services   = { ingest = "affinity-globex-ingest", profiles = "affinity-globex-profiles" }
    }
  }
}

run "every_host_has_a_rule_and_a_matcher" {
  assert {
    condition = { for r in google_compute_url_map.this.host_rule : one(r.hosts) => r.path_matcher } == {
      "api.example.com"       = "default"
      "acme.example.com"      = "customer-acme"
      "events.globex.example" = "customer-globex"
    }
    error_message = "host rules: ${jsonencode(google_compute_url_map.this.host_rule)}"
  }

  assert {
    condition     = toset([for m in google_compute_url_map.this.path_matcher : m.name]) == toset(["default", "customer-acme", "customer-globex"])
    error_message = "matchers: ${jsonencode([for m in google_compute_url_map.this.path_matcher : m.name])}"
  }
}

run "tls" {
  assert {
    condition     = google_compute_target_https_proxy.this.ssl_policy == google_compute_ssl_policy.this.id && google_compute_ssl_policy.this.min_tls_version == "TLS_1_2" && google_compute_ssl_policy.this.profile == "MODERN"
    error_message = "The load balancer accepts TLS below 1.2: ${jsonencode(google_compute_ssl_policy.this)}"
  }
}

run "paths_go_to_their_functions" {
  # What the default host and the shared customer have alike.
  assert {
    condition = alltrue([for m in google_compute_url_map.this.path_matcher : merge([for r in m.path_rule : { for p in r.paths : p => r.service }]...) == {
      "/1/events"          = google_compute_backend_service.this["fn-ingest"].id
      "/1/events/*"        = google_compute_backend_service.this["fn-ingest"].id
      "/1/events/import"   = google_compute_backend_service.this["fn-imports"].id
      "/1/events/import/*" = google_compute_backend_service.this["fn-imports"].id
      "/1/profiles"        = google_compute_backend_service.this["fn-profiles"].id
      "/1/profiles/*"      = google_compute_backend_service.this["fn-profiles"].id
      "/1/usertokens"      = google_compute_backend_service.this["fn-profiles"].id
      "/1/usertokens/*"    = google_compute_backend_service.this["fn-profiles"].id
      "/1/explain"         = google_compute_backend_service.this["fn-profiles"].id
      "/1/explain/*"       = google_compute_backend_service.this["fn-profiles"].id
      "/1/strategies"      = google_compute_backend_service.this["fn-strategies"].id
      "/1/strategies/*"    = google_compute_backend_service.this["fn-strategies"].id
      "/1/indexes"         = google_compute_backend_service.this["fn-catalog"].id
      "/1/indexes/*"       = google_compute_backend_service.this["fn-catalog"].id
      "/1/recomputes"      = google_compute_backend_service.this["fn-recomputes"].id
      "/1/recomputes/*"    = google_compute_backend_service.this["fn-recomputes"].id
      "/1/reenrich"        = google_compute_backend_service.this["fn-recomputes"].id
      "/1/reenrich/*"      = google_compute_backend_service.this["fn-recomputes"].id
      "/1/schema"          = google_compute_backend_service.this["fn-recomputes"].id
      "/1/schema/*"        = google_compute_backend_service.this["fn-recomputes"].id
      "/1/audits"          = google_compute_backend_service.this["fn-recomputes"].id
      "/1/audits/*"        = google_compute_backend_service.this["fn-recomputes"].id
      "/openapi.json"      = google_compute_backend_service.this["fn-docs"].id
      "/openapi.json/*"    = google_compute_backend_service.this["fn-docs"].id
      "/docs"              = google_compute_backend_service.this["fn-docs"].id
      "/docs/*"            = google_compute_backend_service.this["fn-docs"].id
    } if m.name != "customer-globex"])
    error_message = "A path of the default host or of acme goes elsewhere."
  }

  assert {
    condition     = alltrue([for m in google_compute_url_map.this.path_matcher : m.default_service == google_compute_backend_service.this[m.name == "customer-globex" ? "customer-globex-ingest" : "fn-ingest"].id])
    error_message = "What belongs to no function must be answered by ingest."
  }

  assert {
    condition = alltrue([for m in google_compute_url_map.this.path_matcher : alltrue([for r in m.path_rule :
      r.service == google_compute_backend_service.this[contains(r.paths, "/1/events") ? "customer-globex-ingest" : "customer-globex-profiles"].id
      if length(setintersection(r.paths, ["/1/events", "/1/profiles", "/1/explain", "/1/usertokens"])) > 0
    ]) if m.name == "customer-globex"])
    error_message = "A dedicated customer must have its own ingest and profiles."
  }

  assert {
    condition = alltrue([for m in google_compute_url_map.this.path_matcher : alltrue([for r in m.path_rule :
      r.service == google_compute_backend_service.this["fn-imports"].id if contains(r.paths, "/1/events/import")
    ]) if m.name == "customer-globex"])
    error_message = "The other functions of a dedicated customer are those of all."
  }
}

run "only_public_functions_are_behind_it" {
  command = plan

  assert {
    condition = { for key, neg in google_compute_region_network_endpoint_group.this : key => one(neg.cloud_run).service } == {
      "fn-ingest"                = "affinity-ingest"
      "fn-imports"               = "affinity-imports"
      "fn-profiles"              = "affinity-profiles"
      "fn-strategies"            = "affinity-strategies"
      "fn-catalog"               = "affinity-catalog"
      "fn-recomputes"            = "affinity-recomputes"
      "fn-docs"                  = "affinity-docs"
      "customer-globex-ingest"   = "affinity-globex-ingest"
      "customer-globex-profiles" = "affinity-globex-profiles"
    }
    error_message = "groups: ${jsonencode({ for key, neg in google_compute_region_network_endpoint_group.this : key => one(neg.cloud_run).service })}"
  }

  assert {
    condition = alltrue([for b in google_compute_backend_service.this :
      b.load_balancing_scheme == "EXTERNAL_MANAGED" && one(b.log_config).enable && one(b.log_config).sample_rate == 0.1 && length(b.backend) == 1
    ])
    error_message = "Every backend has one group, is of the managed balancer, and logs."
  }

  assert {
    condition     = alltrue([for neg in google_compute_region_network_endpoint_group.this : neg.region == "europe-west1" && neg.network_endpoint_type == "SERVERLESS" && length(neg.name) <= 63])
    error_message = "A group is elsewhere, not serverless, or its name too long."
  }
}

run "every_backend_has_the_policy_and_its_group" {
  assert {
    condition = alltrue([for key, b in google_compute_backend_service.this :
      b.security_policy == google_compute_security_policy.this.id && one(b.backend).group == google_compute_region_network_endpoint_group.this[key].id
    ])
    error_message = "A backend without the policy could be reached past every limit."
  }
}

run "a_throttle_of_each_customer" {
  command = plan

  assert {
    condition = { for r in google_compute_security_policy.this.rule : r.description => one(one(r.rate_limit_options).rate_limit_threshold).count if r.action == "throttle" } == {
      "customer acme"   = 1200
      "customer globex" = 60000
      "default host"    = 6000
    }
    error_message = "throttles: ${jsonencode(google_compute_security_policy.this.rule)}"
  }

  assert {
    condition = alltrue([for r in google_compute_security_policy.this.rule :
      one(r.rate_limit_options).enforce_on_key == "IP" && one(r.rate_limit_options).exceed_action == "deny(429)" &&
      one(r.rate_limit_options).conform_action == "allow" && one(one(r.rate_limit_options).rate_limit_threshold).interval_sec == 60
      if r.action == "throttle"
    ])
    error_message = "A throttle counts by address and minute, and answers 429."
  }

  assert {
    condition = one([for r in google_compute_security_policy.this.rule : one(one(r.match).expr).expression if r.description == "customer acme"]) == (
      "request.headers['host'].lower() == 'acme.example.com' || request.headers['host'].lower() == 'acme.example.com:443'"
    )
    error_message = "acme's throttle must match acme's host and no other."
  }

  assert {
    condition     = { for r in google_compute_security_policy.this.rule : tostring(r.priority) => r.action if r.priority >= 2147483646 } == { "2147483646" = "throttle", "2147483647" = "deny(404)" }
    error_message = "The default host's throttle comes before the last rule, which refuses."
  }

  assert {
    condition     = length(distinct([for r in google_compute_security_policy.this.rule : r.priority])) == 4
    error_message = "Two rules have one priority."
  }
}

# A priority is made of its customer's name alone: no rule moves when one comes.
run "priorities_stay" {
  command = plan

  variables {
    customers = {
      aardvark = { host = "aardvark.example.com", app_id = "AARDVARK" }
      acme     = { host = "acme.example.com", app_id = "ACME", rate_limit = 1200 }
    }
  }

  assert {
    condition     = one([for r in google_compute_security_policy.this.rule : r.priority if r.description == "customer acme"]) == 1000 + parseint(substr(sha256("acme"), 0, 7), 16)
    error_message = "acme's priority has moved."
  }
}

run "certificates" {
  assert {
    condition     = { for h, e in google_certificate_manager_certificate_map_entry.this : h => e.hostname } == { for h in ["api.example.com", "acme.example.com", "events.globex.example"] : h => h }
    error_message = "Every host has an entry in the certificate map."
  }

  assert {
    condition = alltrue([for h, e in google_certificate_manager_certificate_map_entry.this :
      e.map == google_certificate_manager_certificate_map.this.name &&
      one(e.certificates) == google_certificate_manager_certificate.this[h].id &&
      one(one(google_certificate_manager_certificate.this[h].managed).domains) == h &&
      one(one(google_certificate_manager_certificate.this[h].managed).dns_authorizations) == google_certificate_manager_dns_authorization.this[h].id &&
      google_certificate_manager_dns_authorization.this[h].domain == h
    ])
    error_message = "An entry leads to the certificate of another host."
  }

  assert {
    condition     = google_compute_target_https_proxy.this.certificate_map == "//certificatemanager.googleapis.com/projects/p/locations/global/certificateMaps/affinity-edge"
    error_message = "certificate map: ${google_compute_target_https_proxy.this.certificate_map}"
  }
}

run "both_ports_are_of_one_address" {
  assert {
    condition = (google_compute_global_forwarding_rule.https.port_range == "443" && google_compute_global_forwarding_rule.http.port_range == "80" &&
      google_compute_global_forwarding_rule.https.ip_address == google_compute_global_address.this.id &&
      google_compute_global_forwarding_rule.http.ip_address == google_compute_global_address.this.id &&
      google_compute_global_forwarding_rule.https.target == google_compute_target_https_proxy.this.id &&
      google_compute_global_forwarding_rule.http.target == google_compute_target_http_proxy.redirect.id &&
      google_compute_target_https_proxy.this.url_map == google_compute_url_map.this.id &&
    google_compute_target_http_proxy.redirect.url_map == google_compute_url_map.redirect.id)
    error_message = "443 goes to the URL map, 80 to the redirect, of one address."
  }

  assert {
    condition     = one(google_compute_url_map.redirect.default_url_redirect).https_redirect && one(google_compute_url_map.redirect.default_url_redirect).redirect_response_code == "PERMANENT_REDIRECT"
    error_message = "http goes to https, with its method."
  }
}

run "outputs" {
  assert {
    condition = (output.default_endpoint == "https://api.example.com" && output.endpoints.acme.url == "https://acme.example.com" &&
    output.endpoints.globex.dedicated && output.endpoints.globex.rate_limit == 60000 && output.address == "203.0.113.7")
    error_message = "outputs: ${jsonencode(output.endpoints)}"
  }

  assert {
    condition = output.dns_records["acme.example.com"] == [
      { name = "acme.example.com.", type = "A", data = "203.0.113.7" },
      { name = "_acme-challenge.example.com.", type = "CNAME", data = "1.authorize.certificatemanager.goog." },
    ]
    error_message = "records: ${jsonencode(output.dns_records)}"
  }
}

run "without_a_default_host" {
  command = plan

  variables {
    default_host = null
  }

  assert {
    condition     = toset([for r in google_compute_url_map.this.host_rule : one(r.hosts)]) == toset(["acme.example.com", "events.globex.example"])
    error_message = "Only the customers' hosts are served."
  }

  assert {
    condition     = !contains([for r in google_compute_security_policy.this.rule : r.description], "default host")
    error_message = "There is no default host to throttle."
  }
}

run "without_customers" {
  command = plan

  variables {
    customers = {}
  }

  assert {
    condition     = toset([for r in google_compute_url_map.this.host_rule : one(r.hosts)]) == toset(["api.example.com"])
    error_message = "The default host alone is served."
  }
}

run "without_logs" {
  command = plan

  variables {
    log_sample_rate = 0
  }

  assert {
    condition     = alltrue([for b in google_compute_backend_service.this : !one(b.log_config).enable])
    error_message = "0 logs nothing."
  }
}
