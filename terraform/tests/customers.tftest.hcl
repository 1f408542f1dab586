# Each customer has a host, and a dedicated customer also has its own functions.

mock_provider "google" {
  source = "./tests/mocks"
}

variables {
  project_id   = "affinity-test"
  source_dir   = null
  default_host = "api.example.com"
  run_quota    = { cpu = 100, memory_gib = 100 }
  customers = {
    acme = {
      host          = "acme.example.com"
      app_id        = "acme_shop"
      dedicated     = true
      min_instances = 1
      max_instances = 30
      rate_limit    = 12000
      schedule      = "30 1 * * *"
      full_schedule = "30 4 * * sun"
      time_zone     = "Europe/Berlin"
    }
    bistro = { host = "bistro.example.net", app_id = "bistro" }
  }
}

run "endpoints" {
  assert {
    condition     = output.endpoint == "https://api.example.com" && { for name, c in output.customers : name => c.url } == { acme = "https://acme.example.com", bistro = "https://bistro.example.net" }
    error_message = "A host does not have an endpoint: ${jsonencode(output.customers)}"
  }

  assert {
    condition     = toset(keys(output.dns_records)) == toset(["api.example.com", "acme.example.com", "bistro.example.net"])
    error_message = "A host has no DNS records: ${join(", ", keys(output.dns_records))}"
  }

  # With the map of hosts, public functions refuse another app's key on a customer's
  # host. Private functions do not need the map.
  assert {
    condition     = alltrue([for key, d in local.deployed : jsondecode(module.function[key].environment.CUSTOMER_HOSTS) == { "acme.example.com" = "acme_shop", "bistro.example.net" = "bistro" } if contains(local.functions[d.of].env, "CUSTOMER_HOSTS")])
    error_message = "A public function does not have the app of each host."
  }

  assert {
    condition     = !anytrue([for name in ["process", "worker"] : contains(keys(module.function[name].environment), "CUSTOMER_HOSTS")])
    error_message = "A private function has the map of hosts."
  }

  assert {
    condition     = toset(keys(module.edge[0].endpoints)) == toset(["acme", "bistro"]) && module.edge[0].endpoints.acme.rate_limit == 12000 && module.edge[0].endpoints.bistro.rate_limit == 6000
    error_message = "The edge does not have each customer's rate limit: ${jsonencode(module.edge[0].endpoints)}"
  }
}

run "dedicated_functions" {
  command = plan

  assert {
    condition     = output.customers.acme.functions == ["ingest-acme", "process-acme", "profiles-acme", "worker-acme"] && output.customers.bistro.functions == []
    error_message = "Only the dedicated customer should have its own functions, ingest, profiles, process and worker: ${jsonencode(output.customers)}"
  }

  assert {
    condition     = local.size["ingest-acme"].min_instances == 1 && local.size["ingest-acme"].max_instances == 30 && local.size["profiles-acme"].max_instances == 30
    error_message = "The customer's functions do not have the customer's numbers of instances: ${jsonencode(local.size["ingest-acme"])}"
  }

  assert {
    condition     = alltrue([for f in ["process", "worker"] : local.size["${f}-acme"] == merge(local.size[f], { min_instances = 0 })])
    error_message = "The customer's process and worker do not have the sizes of the common ones, without a warm instance."
  }

  assert {
    condition     = local.size["ingest"].max_instances == local.sizes.ingest.max_instances && local.size["ingest-acme"].memory == local.size["ingest"].memory
    error_message = "A customer's numbers of instances change the shared functions, or another part of a size."
  }

  # Its functions have their own accounts, and the same access as the shared functions.
  assert {
    condition = (
      { for key, g in local.table_grants : trimprefix(key, "ingest-acme/") => g.role if startswith(key, "ingest-acme/") } == { for key, g in local.table_grants : trimprefix(key, "ingest/") => g.role if startswith(key, "ingest/") } &&
      contains(keys(local.publishers), "ingest-acme") && !contains(keys(local.publishers), "profiles-acme") &&
      contains(keys(local.enqueuers), "profiles-acme") && !contains(keys(local.enqueuers), "ingest-acme")
    )
    error_message = "A customer's own functions have other access than the shared functions."
  }

  assert {
    condition     = module.function["ingest-acme"].ingress == "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"
    error_message = "A customer's own function is not behind the load balancer."
  }
}

# Each function that sends events or tasks of the customer knows their topic and queues.
run "dedicated_topic_and_queues" {
  assert {
    condition     = alltrue([for key, d in local.deployed : jsondecode(module.function[key].environment.DEDICATED_APPS) == { acme_shop = "acme" } if length(setintersection(local.functions[d.of].env, ["PUBSUB_EVENTS_TOPIC", "TASKS_QUEUE"])) > 0])
    error_message = "A function that publishes or enqueues does not know the dedicated customer."
  }

  assert {
    condition     = module.events.dedicated_subscriptions == { acme = "events-acme-process" } && module.tasks.dedicated_queues == ["purges-acme", "refreshes-0-acme", "refreshes-1-acme", "worker-acme"]
    error_message = "The customer has other subscriptions or queues: ${jsonencode(module.events.dedicated_subscriptions)}, ${join(", ", module.tasks.dedicated_queues)}"
  }

  assert {
    condition = (
      module.function["process-acme"].invokers == module.function["process"].invokers &&
      module.function["worker-acme"].invokers == module.function["worker"].invokers &&
      module.function["worker-acme"].ingress == "INGRESS_TRAFFIC_INTERNAL_ONLY"
    )
    error_message = "Others than Pub/Sub and Cloud Tasks may call the customer's process or worker."
  }

  assert {
    condition     = toset(keys(module.edge[0].endpoints)) == toset(["acme", "bistro"])
    error_message = "The load balancer knows other endpoints."
  }
}

run "sizes_of_one_customer" {
  command = plan

  variables {
    functions = { worker = { min_instances = 1, max_instances = 1 }, worker-acme = { max_instances = 5, concurrency = 2 } }
  }

  assert {
    condition     = local.size["worker"].max_instances == 1 && local.size["worker-acme"].max_instances == 5 && local.size["worker-acme"].concurrency == 2 && local.size["worker-acme"].memory == "2Gi"
    error_message = "A size by the name of a customer's function does not override that of the common one: ${jsonencode(local.size["worker-acme"])}"
  }
}

# Before a customer shares the topic and queues again, their own run empty.
run "draining" {
  command = plan

  variables {
    customers = {
      acme = { host = "acme.example.com", app_id = "acme_shop", dedicated = true, draining = true, max_instances = 1 }
    }
  }

  assert {
    condition     = jsondecode(local.environment.DEDICATED_APPS) == {} && module.events.dedicated_subscriptions == { acme = "events-acme-process" } && length(module.tasks.dedicated_queues) == 4
    error_message = "New events and tasks still go to the customer's topic and queues, or these are gone."
  }
}

run "own_schedule" {
  command = plan

  assert {
    condition = module.tasks.schedules == {
      "affinity-nightly"      = "0 3 * * * Etc/UTC"
      "affinity-nightly-acme" = "30 1 * * * Europe/Berlin"
      "affinity-full-acme"    = "30 4 * * sun Europe/Berlin"
    }
    error_message = "Only a customer with a schedule should have its own round: ${jsonencode(module.tasks.schedules)}"
  }
}

run "probe" {
  command = plan

  assert {
    condition     = strcontains(output.next_steps, "must be 403") && strcontains(output.next_steps, "https://acme.example.com/1/events -H 'X-Algolia-Application-Id: OTHER_APP'")
    error_message = "The next steps do not probe a customer's host with another app's key: ${output.next_steps}"
  }
}

run "without_default_host" {
  command = plan

  variables {
    default_host = null
  }

  assert {
    condition     = output.endpoint == null && length(module.edge) == 1 && strcontains(output.next_steps, "https://acme.example.com/1/events")
    error_message = "Without a default host, the customers' hosts are not served."
  }
}

run "valid_cron_lines" {
  command = plan

  variables {
    customers = {
      a = { host = "a.example.com", app_id = "a", schedule = "*/15 0-6,22 1 * mon-fri" }
      b = { host = "b.example.com", app_id = "b", schedule = "59 23 31 12 7" }
      c = { host = "c.example.com", app_id = "c", schedule = "00 02 * JAN,jul *" }
    }
  }

  assert {
    condition     = length(module.tasks.schedules) == 4
    error_message = "A valid cron line does not make a schedule."
  }
}
