# Apps may live in several regions, each with its own Bigtable instance, topics, queues,
# process and worker.

mock_provider "google" {
  source = "./tests/mocks"
}

variables {
  project_id   = "affinity-test"
  source_dir   = null
  default_host = "api.example.com"
  region       = "europe-west1"
  region_name  = "eu"
  run_quota    = { cpu = 200, memory_gib = 200 }
  archive_days = 30
  warehouse    = true
  data_regions = {
    us = { region = "us-central1", min_instances = { process = 1 } }
    jp = {
      region            = "asia-northeast1"
      bigtable_instance = "affinity-tokyo"
      clusters          = { tokyo-1 = { min_nodes = 3, max_nodes = 9 }, tokyo-2 = { zone = "asia-northeast1-c", serves = false } }
      primary_cluster   = "tokyo-1"
    }
  }
  serving_regions = ["us-central1", "us-east1"]
  customers = {
    acme = { host = "acme.example.com", app_id = "acme_shop", dedicated = true }
  }
}

run "what_each_has" {
  # shared/app/config/region_test.go reads this text.
  assert {
    condition     = output.regions == "[{\"instance\":\"affinity\",\"location\":\"europe-west1\",\"name\":\"eu\",\"worker\":\"https://worker-123456789012.europe-west1.run.app\"},{\"instance\":\"affinity-tokyo\",\"location\":\"asia-northeast1\",\"name\":\"jp\",\"worker\":\"https://worker-123456789012.asia-northeast1.run.app\"},{\"instance\":\"affinity-us\",\"location\":\"us-central1\",\"name\":\"us\",\"worker\":\"https://worker-123456789012.us-central1.run.app\"}]"
    error_message = "The functions know other regions: ${output.regions}"
  }

  assert {
    condition     = alltrue([for f in concat(values(module.function), values(module.serving), values(module.processing)) : lookup(f.environment, "REGIONS", output.regions) == output.regions]) && module.function["ingest"].environment.REGIONS == output.regions
    error_message = "A function does not know the regions."
  }

  assert {
    condition = (
      toset([for f in values(module.function) : lookup(f.environment, "REGION", "none")]) == toset(["eu", "none"]) &&
      alltrue([for key, f in module.processing : f.environment.REGION == split("/", key)[1]]) &&
      module.serving["ingest/us-central1"].environment.REGION == "us" &&
      module.serving["ingest/us-east1"].environment.REGION == "eu"
    )
    error_message = "A function does not know in which region it runs."
  }

  assert {
    condition = toset(keys(module.processing)) == toset(flatten([for region in ["us", "jp"] : [
      for name in ["process", "process-slow", "process-acme", "worker", "worker-acme"] : "${name}/${region}"
    ]]))
    error_message = "Other functions are in the data regions: ${join(", ", keys(module.processing))}"
  }

  # Besides the region, nothing tells them apart from those of the same name.
  assert {
    condition = alltrue([for key, f in module.processing :
      f.service_account_email == module.function[f.name].service_account_email &&
      jsonencode(merge(f.environment, { REGION = "eu" })) == jsonencode(module.function[f.name].environment) &&
      f.ingress == "INGRESS_TRAFFIC_INTERNAL_ONLY" &&
      join(",", f.invokers) == (startswith(f.name, "process") ? module.events.push_member : module.tasks.tasks_member)
    ])
    error_message = "A function in a data region differs from that of the same name, or others than Pub/Sub and Cloud Tasks may call it."
  }
}

# What the engine names by rule.
run "topics_and_queues" {
  assert {
    condition = {
      for name, e in module.regional_events : name => e.storage_regions
      } == {
      for name, region in { us = "us-central1", jp = "asia-northeast1" } : name => {
        for topic in ["events", "events-slow", "events-acme", "events-dead-letter"] : "${topic}.${name}" => [region]
      }
    }
    error_message = "The regions have other topics, or messages may be stored elsewhere: ${jsonencode({ for name, e in module.regional_events : name => e.storage_regions })}"
  }

  assert {
    condition     = module.events.storage_regions == { for topic in ["events", "events-slow", "events-acme", "events-dead-letter"] : topic => ["europe-west1"] }
    error_message = "Messages of the region of the deployment may be stored elsewhere: ${jsonencode(module.events.storage_regions)}"
  }

  assert {
    condition = (
      module.regional_events["us"].subscriptions == { events = "events-process.us", slow = "events-slow-process.us", dead_letters = "events-dead-letter.us" } &&
      module.regional_events["us"].dedicated_subscriptions == { acme = "events-acme-process.us" } &&
      module.regional_events["us"].push_endpoint == "${module.processing["process/us"].uri}/" &&
      module.regional_events["us"].slow_push_endpoint == "${module.processing["process-slow/us"].uri}/"
    )
    error_message = "Messages of a region do not go to its process."
  }

  assert {
    condition = (
      module.regional_tasks["us"].queue == "projects/affinity-test/locations/us-central1/queues/worker" &&
      module.regional_tasks["us"].dedicated_queues == module.tasks.dedicated_queues &&
      module.regional_tasks["us"].tasks_member == module.tasks.tasks_member &&
      module.regional_tasks["us"].queue_host == trimprefix(module.processing["worker/us"].uri, "https://") &&
      length(module.regional_tasks["us"].schedules) == 0
    )
    error_message = "A region has other queues, or schedules of its own: ${jsonencode(module.regional_tasks["us"])}"
  }

  assert {
    condition     = output.regional_archive_buckets == { us = "affinity-test-affinity-archive-us", jp = "affinity-test-affinity-archive-jp" } && output.archive_bucket == "affinity-test-affinity-archive"
    error_message = "The archives of the regions are not their own: ${jsonencode(output.regional_archive_buckets)}"
  }
}

run "warehouse" {
  assert {
    condition     = output.warehouse_datasets == { eu = "affinity", us = "affinity_us", jp = "affinity_jp" }
    error_message = "The rows of the regions are not in datasets of their own: ${jsonencode(output.warehouse_datasets)}"
  }

  assert {
    condition     = module.warehouse[0].topic == "warehouse" && module.regional_warehouse["us"].topic == "warehouse.us" && module.regional_warehouse["us"].dead_letters == "warehouse-dead-letter.us" && local.environment.PUBSUB_WAREHOUSE_TOPIC == "warehouse"
    error_message = "The functions publish rows to other topics than those that exist."
  }

  assert {
    condition     = keys(local.analysed) == ["imports", "process", "process-acme", "process-slow", "worker", "worker-acme"]
    error_message = "Others publish rows than those that write the log and delete users: ${jsonencode(keys(local.analysed))}"
  }
}

run "instances" {
  command = plan

  assert {
    condition     = module.regional_bigtable["jp"].primary_cluster == "tokyo-1" && join(",", module.regional_bigtable["jp"].serving_clusters) == "tokyo-1" && module.regional_bigtable["us"].primary_cluster == "cluster-1"
    error_message = "A region has other clusters."
  }
}

run "none" {
  variables {
    data_regions = {}
    region_name  = null
  }

  assert {
    condition     = output.regions == "" && module.function["ingest"].environment.REGIONS == "" && module.function["ingest"].environment.REGION == "" && length(module.processing) == 0 && alltrue([for regions in values(module.events.storage_regions) : length(regions) == 0])
    error_message = "A deployment without data regions knows regions."
  }
}

# Sets of tables are regions within others.
run "dedicated_tables" {
  variables {
    dedicated_tables = { big = { region = "us" }, old = {} }
  }

  assert {
    condition     = [for p in jsondecode(output.regions) : [p.name, lookup(p, "in", "")]] == [["eu", ""], ["jp", ""], ["us", ""], ["big", "us"], ["old", "eu"]]
    error_message = "The functions know other sets of tables: ${output.regions}"
  }

  assert {
    condition = (
      toset([for t in module.bigtable.tables : t if strcontains(t, ".")]) == toset([for t in module.bigtable.tables : "${t}.old" if !strcontains(t, ".")]) &&
      toset([for t in module.regional_bigtable["us"].tables : t if strcontains(t, ".")]) == toset([for t in module.bigtable.tables : "${t}.big" if !strcontains(t, ".")]) &&
      !anytrue([for t in module.regional_bigtable["jp"].tables : strcontains(t, ".")])
    )
    error_message = "The instances have other tables: ${join(", ", module.bigtable.tables)}"
  }

  # No topic, queue or function is theirs.
  assert {
    condition     = keys(module.regional_events) == ["jp", "us"] && keys(module.regional_tasks) == ["jp", "us"] && length(module.processing) == 10
    error_message = "A set of tables has topics, queues or functions of its own."
  }
}

run "dedicated_tables_without_data_regions" {
  variables {
    data_regions     = {}
    region_name      = null
    dedicated_tables = { big = {} }
  }

  assert {
    condition     = [for p in jsondecode(output.regions) : p.name] == ["europe-west1", "big"] && module.function["worker"].environment.REGION == "europe-west1" && alltrue([for regions in values(module.events.storage_regions) : length(regions) == 0])
    error_message = "A set of tables needs data regions: ${output.regions}"
  }
}

run "dedicated_tables_in_unknown_region" {
  command = plan
  variables {
    dedicated_tables = { big = { region = "mars" } }
  }
  expect_failures = [var.dedicated_tables]
}

run "dedicated_tables_named_as_a_region" {
  command = plan
  variables {
    dedicated_tables = { us = {} }
  }
  expect_failures = [var.dedicated_tables]
}

run "named_as_the_first" {
  command = plan
  variables {
    data_regions = { eu = { region = "us-central1" } }
  }
  expect_failures = [var.data_regions]
}

run "at_the_place_of_the_first" {
  command = plan
  variables {
    data_regions = { us = { region = "europe-west1" } }
  }
  expect_failures = [var.data_regions]
}

run "unknown_region" {
  command = plan
  variables {
    data_regions = { mars = { region = "mars-north1" } }
  }
  expect_failures = [var.data_regions]
}

run "two_at_one_place" {
  command = plan
  variables {
    data_regions = { us = { region = "us-central1" }, ca = { region = "us-central1" } }
  }
  expect_failures = [var.data_regions]
}

run "no_primary_cluster" {
  command = plan
  variables {
    data_regions = { us = { region = "us-central1", clusters = { cluster-1 = {}, cluster-2 = { zone = "us-central1-c" } } } }
  }
  expect_failures = [var.data_regions]
}

run "no_such_function" {
  command = plan
  variables {
    data_regions = { us = { region = "us-central1", min_instances = { ingest = 1 } } }
  }
  expect_failures = [var.data_regions]
}
