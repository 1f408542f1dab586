# An edge with a shared customer, a dedicated customer and a default host.

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

  override_resource {
    target = google_compute_global_address.ipv6
    values = { id = "ipv6", address = "2001:db8::7" }
  }
}

variables {
  region       = "europe-west1"
  default_host = "api.example.com"
  functions = {
    ingest     = "affinity-ingest"
    imports    = "affinity-imports"
    profiles   = "affinity-profiles"
    rank       = "affinity-rank"
    strategies = "affinity-strategies"
    catalog    = "affinity-catalog"
    admin      = "affinity-admin"
    segments   = "affinity-segments"
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

run "hosts" {
  assert {
    condition = { for r in google_compute_url_map.this.host_rule : one(r.hosts) => r.path_matcher } == {
      "api.example.com"       = "default"
      "acme.example.com"      = "customer-acme"
      "events.globex.example" = "customer-globex"
    }
    error_message = "The host rules do not lead each host to its path matcher: ${jsonencode(google_compute_url_map.this.host_rule)}"
  }

  assert {
    condition     = toset([for m in google_compute_url_map.this.path_matcher : m.name]) == toset(["default", "customer-acme", "customer-globex"])
    error_message = "The path matchers are not those of the hosts: ${jsonencode([for m in google_compute_url_map.this.path_matcher : m.name])}"
  }

  assert {
    condition = { for m in google_compute_url_map.this.path_matcher : m.name => [for h in one(m.header_action).request_headers_to_add : "${h.header_name}=${h.header_value}:${h.replace}"] } == {
      "default"         = ["X-Affinity-Customer=-:true"]
      "customer-acme"   = ["X-Affinity-Customer=ACME:true"]
      "customer-globex" = ["X-Affinity-Customer=GLOBEX:true"]
    }
    error_message = "The path matchers do not name their customers: ${jsonencode([for m in google_compute_url_map.this.path_matcher : m.header_action])}"
  }
}

run "release" {
  variables {
    release = "0a1b2c"
  }

  assert {
    condition = { for h in concat(one(google_compute_url_map.this.header_action).request_headers_to_add, one(google_compute_url_map.this.header_action).response_headers_to_add) : "${h.header_name}=${h.header_value}:${h.replace}" => true... } == {
      "X-Affinity-Release=0a1b2c:true" = [true, true]
    }
    error_message = "Functions and clients do not learn the release: ${jsonencode(google_compute_url_map.this.header_action)}"
  }
}

run "tls" {
  assert {
    condition     = google_compute_target_https_proxy.this.ssl_policy == google_compute_ssl_policy.this.id && google_compute_ssl_policy.this.min_tls_version == "TLS_1_2" && google_compute_ssl_policy.this.profile == "MODERN"
    error_message = "The load balancer accepts TLS below 1.2: ${jsonencode(google_compute_ssl_policy.this)}"
  }
}

run "routes" {
  # The default host and the shared customer have the same routes.
  assert {
    condition = alltrue([for m in google_compute_url_map.this.path_matcher : merge([for r in m.path_rule : { for p in r.paths : p => r.service }]...) == {
      "/1/events"               = google_compute_backend_service.this["fn-ingest"].id
      "/1/events/*"             = google_compute_backend_service.this["fn-ingest"].id
      "/v1"                     = google_compute_backend_service.this["fn-ingest"].id
      "/v1/*"                   = google_compute_backend_service.this["fn-ingest"].id
      "/beacon"                 = google_compute_backend_service.this["fn-ingest"].id
      "/beacon/*"               = google_compute_backend_service.this["fn-ingest"].id
      "/1/events/import"        = google_compute_backend_service.this["fn-imports"].id
      "/1/events/import/*"      = google_compute_backend_service.this["fn-imports"].id
      "/1/profiles"             = google_compute_backend_service.this["fn-profiles"].id
      "/1/profiles/*"           = google_compute_backend_service.this["fn-profiles"].id
      "/1/usertokens"           = google_compute_backend_service.this["fn-profiles"].id
      "/1/usertokens/*"         = google_compute_backend_service.this["fn-profiles"].id
      "/1/users"                = google_compute_backend_service.this["fn-profiles"].id
      "/1/users/*"              = google_compute_backend_service.this["fn-profiles"].id
      "/1/consents"             = google_compute_backend_service.this["fn-profiles"].id
      "/1/consents/*"           = google_compute_backend_service.this["fn-profiles"].id
      "/1/optouts"              = google_compute_backend_service.this["fn-profiles"].id
      "/1/optouts/*"            = google_compute_backend_service.this["fn-profiles"].id
      "/1/identities"           = google_compute_backend_service.this["fn-profiles"].id
      "/1/identities/*"         = google_compute_backend_service.this["fn-profiles"].id
      "/1/events/recent"        = google_compute_backend_service.this["fn-profiles"].id
      "/1/events/recent/*"      = google_compute_backend_service.this["fn-profiles"].id
      "/1/explain"              = google_compute_backend_service.this["fn-profiles"].id
      "/1/explain/*"            = google_compute_backend_service.this["fn-profiles"].id
      "/1/rank"                 = google_compute_backend_service.this["fn-rank"].id
      "/1/rank/*"               = google_compute_backend_service.this["fn-rank"].id
      "/1/recommend"            = google_compute_backend_service.this["fn-rank"].id
      "/1/recommend/*"          = google_compute_backend_service.this["fn-rank"].id
      "/1/boosts"               = google_compute_backend_service.this["fn-rank"].id
      "/1/boosts/*"             = google_compute_backend_service.this["fn-rank"].id
      "/1/feeds"                = google_compute_backend_service.this["fn-rank"].id
      "/1/feeds/*"              = google_compute_backend_service.this["fn-rank"].id
      "/1/strategies"           = google_compute_backend_service.this["fn-strategies"].id
      "/1/strategies/*"         = google_compute_backend_service.this["fn-strategies"].id
      "/1/indexes"              = google_compute_backend_service.this["fn-catalog"].id
      "/1/indexes/*"            = google_compute_backend_service.this["fn-catalog"].id
      "/1/track-names"          = google_compute_backend_service.this["fn-catalog"].id
      "/1/track-names/*"        = google_compute_backend_service.this["fn-catalog"].id
      "/1/recomputes"           = google_compute_backend_service.this["fn-admin"].id
      "/1/recomputes/*"         = google_compute_backend_service.this["fn-admin"].id
      "/1/backtests"            = google_compute_backend_service.this["fn-admin"].id
      "/1/backtests/*"          = google_compute_backend_service.this["fn-admin"].id
      "/1/experiments"          = google_compute_backend_service.this["fn-admin"].id
      "/1/experiments/*"        = google_compute_backend_service.this["fn-admin"].id
      "/1/reports"              = google_compute_backend_service.this["fn-admin"].id
      "/1/reports/*"            = google_compute_backend_service.this["fn-admin"].id
      "/1/reenrich"             = google_compute_backend_service.this["fn-admin"].id
      "/1/reenrich/*"           = google_compute_backend_service.this["fn-admin"].id
      "/1/crowd"                = google_compute_backend_service.this["fn-admin"].id
      "/1/crowd/*"              = google_compute_backend_service.this["fn-admin"].id
      "/1/segments"             = google_compute_backend_service.this["fn-segments"].id
      "/1/segments/*"           = google_compute_backend_service.this["fn-segments"].id
      "/1/values"               = google_compute_backend_service.this["fn-segments"].id
      "/1/values/*"             = google_compute_backend_service.this["fn-segments"].id
      "/1/schema"               = google_compute_backend_service.this["fn-admin"].id
      "/1/schema/*"             = google_compute_backend_service.this["fn-admin"].id
      "/1/audits"               = google_compute_backend_service.this["fn-admin"].id
      "/1/audits/*"             = google_compute_backend_service.this["fn-admin"].id
      "/1/usage"                = google_compute_backend_service.this["fn-admin"].id
      "/1/usage/*"              = google_compute_backend_service.this["fn-admin"].id
      "/1/app"                  = google_compute_backend_service.this["fn-admin"].id
      "/1/app/*"                = google_compute_backend_service.this["fn-admin"].id
      "/1/export"               = google_compute_backend_service.this["fn-admin"].id
      "/1/export/*"             = google_compute_backend_service.this["fn-admin"].id
      "/1/dump"                 = google_compute_backend_service.this["fn-admin"].id
      "/1/dump/*"               = google_compute_backend_service.this["fn-admin"].id
      "/1/imports"              = google_compute_backend_service.this["fn-admin"].id
      "/1/imports/*"            = google_compute_backend_service.this["fn-admin"].id
      "/1/identities/preview"   = google_compute_backend_service.this["fn-admin"].id
      "/1/identities/preview/*" = google_compute_backend_service.this["fn-admin"].id
      "/1/audit-log"            = google_compute_backend_service.this["fn-admin"].id
      "/1/audit-log/*"          = google_compute_backend_service.this["fn-admin"].id
      "/openapi.json"           = google_compute_backend_service.this["fn-docs"].id
      "/openapi.json/*"         = google_compute_backend_service.this["fn-docs"].id
      "/docs"                   = google_compute_backend_service.this["fn-docs"].id
      "/docs/*"                 = google_compute_backend_service.this["fn-docs"].id
      "/client.js"              = google_compute_backend_service.this["fn-docs"].id
      "/client.js/*"            = google_compute_backend_service.this["fn-docs"].id
      "/client"                 = google_compute_backend_service.this["fn-docs"].id
      "/client/*"               = google_compute_backend_service.this["fn-docs"].id
      "/health"                 = google_compute_backend_service.this["fn-docs"].id
      "/health/*"               = google_compute_backend_service.this["fn-docs"].id
    } if m.name != "customer-globex"])
    error_message = "A path of the default host or of acme leads to another function."
  }

  assert {
    condition     = alltrue([for m in google_compute_url_map.this.path_matcher : m.default_service == google_compute_backend_service.this[m.name == "customer-globex" ? "customer-globex-ingest" : "fn-ingest"].id])
    error_message = "A path without a function does not lead to ingest."
  }

  assert {
    condition = alltrue([for m in google_compute_url_map.this.path_matcher : alltrue([for r in m.path_rule :
      r.service == google_compute_backend_service.this[length(setintersection(r.paths, ["/1/events", "/v1", "/beacon"])) > 0 ? "customer-globex-ingest" : "customer-globex-profiles"].id
      if length(setintersection(r.paths, ["/1/events", "/v1", "/beacon", "/1/profiles", "/1/explain", "/1/optouts", "/1/consents", "/1/users", "/1/identities", "/1/usertokens", "/1/events/recent"])) > 0
    ]) if m.name == "customer-globex"])
    error_message = "A dedicated customer's paths do not lead to its own functions ingest and profiles."
  }

  assert {
    condition = alltrue([for m in google_compute_url_map.this.path_matcher : alltrue([for r in m.path_rule :
      r.service == google_compute_backend_service.this["fn-imports"].id if contains(r.paths, "/1/events/import")
    ]) if m.name == "customer-globex"])
    error_message = "A dedicated customer's imports do not lead to the shared function."
  }
}

run "endpoint_groups" {
  command = plan

  assert {
    condition = { for key, neg in google_compute_region_network_endpoint_group.this : key => one(neg.cloud_run).service } == {
      "fn-ingest"                = "affinity-ingest"
      "fn-imports"               = "affinity-imports"
      "fn-profiles"              = "affinity-profiles"
      "fn-rank"                  = "affinity-rank"
      "fn-strategies"            = "affinity-strategies"
      "fn-catalog"               = "affinity-catalog"
      "fn-admin"                 = "affinity-admin"
      "fn-segments"              = "affinity-segments"
      "fn-docs"                  = "affinity-docs"
      "customer-globex-ingest"   = "affinity-globex-ingest"
      "customer-globex-profiles" = "affinity-globex-profiles"
    }
    error_message = "The endpoint groups are not those of the public functions: ${jsonencode({ for key, neg in google_compute_region_network_endpoint_group.this : key => one(neg.cloud_run).service })}"
  }

  assert {
    condition = alltrue([for b in google_compute_backend_service.this :
      b.load_balancing_scheme == "EXTERNAL_MANAGED" && one(b.log_config).enable && one(b.log_config).sample_rate == 0.1 && length(b.backend) == 1 &&
      toset(b.custom_response_headers) == toset(["Strict-Transport-Security: max-age=31536000"]) && toset(b.custom_request_headers) == toset(["X-Client-Geo-Region:{client_region}"])
    ])
    error_message = "A backend does not have exactly one group, the managed load balancer, logs, HSTS, and the client's country."
  }

  assert {
    condition     = alltrue([for neg in google_compute_region_network_endpoint_group.this : neg.region == "europe-west1" && neg.network_endpoint_type == "SERVERLESS" && length(neg.name) <= 63])
    error_message = "A group is in another region, is not serverless, or has too long a name."
  }
}

run "security_policy_on_backends" {
  assert {
    condition = alltrue([for key, b in google_compute_backend_service.this :
      b.security_policy == google_compute_security_policy.this.id && one(b.backend).group == google_compute_region_network_endpoint_group.this[key].id
    ])
    error_message = "A backend lacks the security policy, which limits rates, or has another group."
  }
}

run "rate_limits" {
  command = plan

  assert {
    condition = { for r in google_compute_security_policy.this.rule : r.description => one(one(r.rate_limit_options).rate_limit_threshold).count if r.action == "throttle" } == {
      "customer acme"   = 1200
      "customer globex" = 60000
      "default host"    = 6000
    }
    error_message = "The rate limits are not those of the hosts: ${jsonencode(google_compute_security_policy.this.rule)}"
  }

  assert {
    condition = alltrue([for r in google_compute_security_policy.this.rule :
      one(r.rate_limit_options).enforce_on_key == "IP" && one(r.rate_limit_options).exceed_action == "deny(429)" &&
      one(r.rate_limit_options).conform_action == "allow" && one(one(r.rate_limit_options).rate_limit_threshold).interval_sec == 60
      if r.action == "throttle"
    ])
    error_message = "A rate limit does not count by address and minute, or does not answer 429."
  }

  assert {
    condition = one([for r in google_compute_security_policy.this.rule : one(one(r.match).expr).expression if r.description == "customer acme"]) == (
      "request.headers['host'].lower() == 'acme.example.com' || request.headers['host'].lower() == 'acme.example.com:443'"
    )
    error_message = "acme's rate limit does not match exactly acme's host."
  }

  assert {
    condition     = { for r in google_compute_security_policy.this.rule : tostring(r.priority) => r.action if r.priority >= 2147483646 } == { "2147483646" = "throttle", "2147483647" = "deny(404)" }
    error_message = "The last two rules are not the default host's rate limit and the refusal of other hosts."
  }

  assert {
    condition     = length(distinct([for r in google_compute_security_policy.this.rule : r.priority])) == 4
    error_message = "Two rules have the same priority."
  }
}

# A rule's priority depends only on its customer's name, so a new customer moves no
# other rule.
run "stable_priorities" {
  command = plan

  variables {
    customers = {
      aardvark = { host = "aardvark.example.com", app_id = "AARDVARK" }
      acme     = { host = "acme.example.com", app_id = "ACME", rate_limit = 1200 }
    }
  }

  assert {
    condition     = one([for r in google_compute_security_policy.this.rule : r.priority if r.description == "customer acme"]) == 1000 + parseint(substr(sha256("acme"), 0, 7), 16)
    error_message = "acme's priority depends on the other customers."
  }
}

run "certificates" {
  assert {
    condition     = { for h, e in google_certificate_manager_certificate_map_entry.this : h => e.hostname } == { for h in ["api.example.com", "acme.example.com", "events.globex.example"] : h => h }
    error_message = "A host has no entry in the certificate map."
  }

  assert {
    condition = alltrue([for h, e in google_certificate_manager_certificate_map_entry.this :
      e.map == google_certificate_manager_certificate_map.this.name &&
      one(e.certificates) == google_certificate_manager_certificate.this[h].id &&
      one(one(google_certificate_manager_certificate.this[h].managed).domains) == h &&
      one(one(google_certificate_manager_certificate.this[h].managed).dns_authorizations) == google_certificate_manager_dns_authorization.this[h].id &&
      google_certificate_manager_dns_authorization.this[h].domain == h
    ])
    error_message = "An entry of the certificate map has the certificate of another host."
  }

  assert {
    condition     = google_compute_target_https_proxy.this.certificate_map == "//certificatemanager.googleapis.com/projects/p/locations/global/certificateMaps/affinity-edge"
    error_message = "The HTTPS proxy uses another certificate map: ${google_compute_target_https_proxy.this.certificate_map}"
  }
}

run "ports" {
  assert {
    condition = alltrue([for rule in [google_compute_global_forwarding_rule.https, google_compute_global_forwarding_rule.ipv6] :
      rule.port_range == "443" && rule.target == google_compute_target_https_proxy.this.id
    ]) && google_compute_target_https_proxy.this.url_map == google_compute_url_map.this.id
    error_message = "Port 443 of an address does not lead to the URL map."
  }

  assert {
    condition     = google_compute_global_forwarding_rule.https.ip_address == google_compute_global_address.this.id && google_compute_global_forwarding_rule.ipv6.ip_address == google_compute_global_address.ipv6.id && google_compute_global_address.ipv6.ip_version == "IPV6"
    error_message = "The rules do not have an IPv4 and an IPv6 address."
  }
}

# Terraform makes the records of the hosts in the zone, and lists the others.
run "dns_zone" {
  variables {
    dns_zone = { name = "example-com", domain = "example.com", project = "dns-project" }
  }

  assert {
    condition = { for key, r in google_dns_record_set.this : key => "${r.name} ${r.type} ${one(r.rrdatas)}" if r.managed_zone == "example-com" && r.project == "dns-project" } == {
      "acme.example.com/address" = "acme.example.com. A 203.0.113.7"
      "acme.example.com/ipv6"    = "acme.example.com. AAAA 2001:db8::7"
      "acme.example.com/proof"   = "_acme-challenge.example.com. CNAME 1.authorize.certificatemanager.goog."
      "api.example.com/address"  = "api.example.com. A 203.0.113.7"
      "api.example.com/ipv6"     = "api.example.com. AAAA 2001:db8::7"
      "api.example.com/proof"    = "_acme-challenge.example.com. CNAME 1.authorize.certificatemanager.goog."
    }
    error_message = "The records are wrong: ${jsonencode({ for key, r in google_dns_record_set.this : key => [r.name, r.type, r.rrdatas] })}"
  }

  assert {
    condition     = keys(output.dns_records) == ["events.globex.example"]
    error_message = "The records to create by hand are those of ${jsonencode(keys(output.dns_records))}."
  }
}

run "outputs" {
  assert {
    condition = (output.default_endpoint == "https://api.example.com" && output.endpoints.acme.url == "https://acme.example.com" &&
    output.endpoints.globex.dedicated && output.endpoints.globex.rate_limit == 60000 && output.addresses.ipv4 == "203.0.113.7")
    error_message = "The endpoints in the outputs are wrong: ${jsonencode(output.endpoints)}"
  }

  assert {
    condition = output.dns_records["acme.example.com"] == [
      { name = "acme.example.com.", type = "A", data = "203.0.113.7" },
      { name = "acme.example.com.", type = "AAAA", data = "2001:db8::7" },
      { name = "_acme-challenge.example.com.", type = "CNAME", data = "1.authorize.certificatemanager.goog." },
    ]
    error_message = "The DNS records of acme are wrong: ${jsonencode(output.dns_records)}"
  }
}

# The console has a host of its own: it serves nothing else, and no other host serves it.
run "console" {
  variables {
    console = { host = "console.example.com", service = "affinity-console" }
  }

  assert {
    condition = (
      one([for r in google_compute_url_map.this.host_rule : r.path_matcher if one(r.hosts) == "console.example.com"]) == "console" &&
      one([for m in google_compute_url_map.this.path_matcher : m.default_service if m.name == "console"]) == google_compute_backend_service.this["fn-console"].id &&
      one([for m in google_compute_url_map.this.path_matcher : length(m.path_rule) if m.name == "console"]) == 0
    )
    error_message = "The console's host serves something else: ${jsonencode([for m in google_compute_url_map.this.path_matcher : m if m.name == "console"])}"
  }

  assert {
    condition     = one([for m in google_compute_url_map.this.path_matcher : one(one(m.header_action).request_headers_to_add).header_value if m.name == "console"]) == "-"
    error_message = "The console's host is that of a customer."
  }

  assert {
    condition = alltrue([for m in google_compute_url_map.this.path_matcher :
      length(m.path_rule) > 0 && !contains(concat([m.default_service], [for r in m.path_rule : r.service]), google_compute_backend_service.this["fn-console"].id) if m.name != "console"
    ]) && google_compute_url_map.this.default_service != google_compute_backend_service.this["fn-console"].id
    error_message = "A host of the API serves the console, or no longer serves the API."
  }

  assert {
    condition     = one([for r in google_compute_security_policy.this.rule : "${r.action} ${r.priority} ${one(one(r.rate_limit_options).rate_limit_threshold).count}" if r.description == "console"]) == "throttle 2147483645 600"
    error_message = "The requests to the console's host are not limited."
  }

  assert {
    condition     = google_certificate_manager_certificate_map_entry.this["console.example.com"].hostname == "console.example.com" && length(output.dns_records["console.example.com"]) == 3
    error_message = "The console's host has no certificate or no DNS records."
  }
}

run "without_a_console" {
  assert {
    condition     = !contains(keys(google_compute_backend_service.this), "fn-console") && !contains([for m in google_compute_url_map.this.path_matcher : m.name], "console") && !contains([for r in google_compute_security_policy.this.rule : r.description], "console")
    error_message = "There is something of a console that is not deployed."
  }
}

run "console_on_a_customers_host" {
  command = plan

  variables {
    console = { host = "acme.example.com", service = "affinity-console" }
  }

  expect_failures = [var.console]
}

run "without_a_default_host" {
  command = plan

  variables {
    default_host = null
  }

  assert {
    condition     = toset([for r in google_compute_url_map.this.host_rule : one(r.hosts)]) == toset(["acme.example.com", "events.globex.example"])
    error_message = "The edge does not serve exactly the customers' hosts."
  }

  assert {
    condition     = !contains([for r in google_compute_security_policy.this.rule : r.description], "default host")
    error_message = "There is a rate limit for a default host that does not exist."
  }
}

run "without_customers" {
  command = plan

  variables {
    customers = {}
  }

  assert {
    condition     = toset([for r in google_compute_url_map.this.host_rule : one(r.hosts)]) == toset(["api.example.com"])
    error_message = "The edge does not serve exactly the default host."
  }
}

run "without_logs" {
  command = plan

  variables {
    log_sample_rate = 0
  }

  assert {
    condition     = alltrue([for b in google_compute_backend_service.this : !one(b.log_config).enable])
    error_message = "With a sample rate of 0, a backend still logs."
  }
}
