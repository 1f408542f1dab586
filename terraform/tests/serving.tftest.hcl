# The public functions run in other regions too, behind the same address.

mock_provider "google" {
  source = "./tests/mocks"
}

variables {
  project_id      = "affinity-test"
  source_dir      = null
  default_host    = "api.example.com"
  run_quota       = { cpu = 200, memory_gib = 200 }
  serving_regions = ["us-central1", "asia-northeast1"]
  customers = {
    acme = { host = "acme.example.com", app_id = "acme_shop", dedicated = true }
  }
}

run "functions" {
  assert {
    condition = toset(keys(module.serving)) == toset(flatten([for region in ["us-central1", "asia-northeast1"] : [
      for name in ["admin", "catalog", "docs", "imports", "ingest", "ingest-acme", "profiles", "profiles-acme", "rank", "segments", "strategies"] : "${name}/${region}"
    ]]))
    error_message = "Other functions are in the serving regions: ${join(", ", keys(module.serving))}"
  }

  # Nothing tells them apart from those of the same name: access, logs, metrics and limits
  # go by account and name.
  assert {
    condition = alltrue([for key, f in module.serving :
      f.name == local.serving[key].key &&
      f.service_account_email == module.function[f.name].service_account_email &&
      f.environment == module.function[f.name].environment &&
      f.image == module.function[f.name].image &&
      f.invokers == module.function[f.name].invokers &&
      f.ingress == "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"
    ])
    error_message = "A function in a serving region differs from that of the same name."
  }

  assert {
    condition     = toset(keys(module.edge[0].groups)) == toset(["asia-northeast1", "europe-west1", "us-central1"]) && alltrue([for region, services in module.edge[0].groups : length(services) == 11])
    error_message = "The load balancer does not have each public function in each region: ${jsonencode(module.edge[0].groups)}"
  }
}

# The load balancer leaves a region out whose warm instances are not ready.
run "failover" {
  command = plan

  variables {
    functions = { profiles = { min_instances = 1 } }
  }

  assert {
    condition     = [for key, f in merge(module.function, module.serving) : key if f.ready] == ["profiles", "profiles/asia-northeast1", "profiles/us-central1"]
    error_message = "Other services are asked whether they are ready: ${jsonencode([for key, f in merge(module.function, module.serving) : key if f.ready])}"
  }

  assert {
    condition     = module.edge[0].ejects
    error_message = "The load balancer goes on sending requests to a region that fails."
  }
}

# A revision belongs to a service of one region.
run "canary" {
  command = plan

  variables {
    traffic = { "rank/us-central1" = { latest = 5, revision = "rank-00007-abc" } }
  }

  assert {
    condition     = { for key, f in merge(module.function, module.serving) : key => f.traffic if f.traffic != { newest = 100 } } == { "rank/us-central1" = { newest = 5, rank-00007-abc = 95 } }
    error_message = "Requests go to other revisions."
  }
}

run "none" {
  variables {
    serving_regions = []
  }

  assert {
    condition     = length(module.serving) == 0 && keys(module.edge[0].groups) == ["europe-west1"] && !module.edge[0].ejects
    error_message = "There are functions in other regions."
  }
}

run "unknown" {
  command = plan

  variables {
    serving_regions = ["mars-north1"]
  }

  expect_failures = [var.serving_regions]
}

run "the_same" {
  command = plan

  variables {
    serving_regions = ["europe-west1"]
  }

  expect_failures = [var.serving_regions]
}

run "twice" {
  command = plan

  variables {
    serving_regions = ["us-central1", "us-central1"]
  }

  expect_failures = [var.serving_regions]
}
