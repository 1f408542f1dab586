# A project id and nothing else: the whole engine, as cheap as it can be.

mock_provider "google" {
  source = "./tests/mocks"
}

variables {
  project_id = "affinity-test"
  source_dir = null # nothing is packaged where these tests run
}

override_resource {
  target = module.events.google_service_account.push
  values = {
    name   = "projects/affinity-test/serviceAccounts/push-events@affinity-test.iam.gserviceaccount.com"
    email  = "push-events@affinity-test.iam.gserviceaccount.com"
    member = "serviceAccount:push-events@affinity-test.iam.gserviceaccount.com"
  }
}

override_resource {
  target = module.tasks.google_service_account.tasks
  values = {
    name   = "projects/affinity-test/serviceAccounts/call-tasks@affinity-test.iam.gserviceaccount.com"
    email  = "call-tasks@affinity-test.iam.gserviceaccount.com"
    member = "serviceAccount:call-tasks@affinity-test.iam.gserviceaccount.com"
  }
}

override_resource {
  target = module.tasks.google_service_account.scheduler
  values = {
    name   = "projects/affinity-test/serviceAccounts/call-nightly@affinity-test.iam.gserviceaccount.com"
    email  = "call-nightly@affinity-test.iam.gserviceaccount.com"
    member = "serviceAccount:call-nightly@affinity-test.iam.gserviceaccount.com"
  }
}

run "plan" {
  command = plan

  assert {
    condition     = toset(keys(module.function)) == toset([for f in jsondecode(file("functions.json")).functions : f.name])
    error_message = "Functions that are deployed are not those of functions.json: ${join(", ", keys(module.function))}"
  }

  assert {
    condition     = toset(keys(local.sizes)) == toset(keys(local.functions)) && toset(keys(local.access)) == toset(keys(local.functions))
    error_message = "sizes.tf or access.tf tells of other functions than functions.json."
  }

  assert {
    condition     = alltrue([for name, f in local.functions : sort(keys(module.function[name].environment)) == sort(f.env)])
    error_message = "A function is not given exactly the variables that it reads."
  }

  assert {
    condition     = alltrue([for name, f in local.functions : module.function[name].ingress == (f.kind == "public" ? "ALLOW_INTERNAL_AND_GCLB" : "ALLOW_INTERNAL_ONLY")])
    error_message = "A private function can be reached from outside, or a public one cannot."
  }

  assert {
    condition     = alltrue([for s in values(local.size) : s.min_instances == 0])
    error_message = "An instance is kept warm without having been asked for."
  }

  assert {
    condition     = length(module.edge) == 0 && output.endpoint == null && strcontains(output.next_steps, "set default_host")
    error_message = "There is a load balancer without a host, or the next steps do not ask for a host."
  }

  assert {
    condition     = keys(module.tasks.schedules) == ["affinity-nightly"]
    error_message = "There should be the common nightly round and no other: ${join(", ", keys(module.tasks.schedules))}"
  }

  assert {
    condition     = output.bigtable == { instance = "affinity", primary_cluster = "cluster-1" }
    error_message = "The instance is not the one cluster that nothing was said about."
  }

  # Nobody gives up on a call before the function does.
  assert {
    condition     = local.size["process"].timeout_seconds == 540 && module.events.ack_deadline_seconds == 570 && local.size["worker"].timeout_seconds == 600
    error_message = "Pub/Sub waits ${module.events.ack_deadline_seconds} s for process, which may take ${local.size["process"].timeout_seconds} s."
  }

  assert {
    condition     = module.firestore.expiring == { moves = "expiresAt", recomputes = "expiresAt", reenrichments = "expiresAt", shards = "expiresAt" }
    error_message = "What jobs leave behind does not go, or something else does: ${jsonencode(module.firestore.expiring)}"
  }
}

run "apply" {
  assert {
    condition     = alltrue([for key, g in local.table_grants : g.member == module.function[split("/", key)[0]].service_account_member])
    error_message = "A grant is another function's than its name says."
  }

  assert {
    condition     = alltrue([for name, f in local.functions : module.function[name].invokers == tolist(["allUsers"]) if f.kind == "public"])
    error_message = "The load balancer cannot call every public function."
  }

  assert {
    condition     = module.function["process"].invokers == tolist(["serviceAccount:push-events@affinity-test.iam.gserviceaccount.com"])
    error_message = "process may be called by Pub/Sub alone: ${join(", ", module.function["process"].invokers)}"
  }

  assert {
    condition     = module.function["worker"].invokers == tolist(["serviceAccount:call-nightly@affinity-test.iam.gserviceaccount.com", "serviceAccount:call-tasks@affinity-test.iam.gserviceaccount.com"])
    error_message = "worker may be called by Cloud Tasks and Cloud Scheduler alone: ${join(", ", module.function["worker"].invokers)}"
  }

  assert {
    condition = (
      module.function["worker"].environment.TASKS_SERVICE_ACCOUNT == "call-tasks@affinity-test.iam.gserviceaccount.com" &&
      module.function["worker"].environment.TASKS_QUEUE == "projects/affinity-test/locations/europe-west1/queues/worker" &&
      module.function["worker"].environment.WORKER_URL == "https://worker-123456789012.europe-west1.run.app" &&
      module.function["worker"].environment.TASKS_AUDIENCE == module.function["worker"].environment.WORKER_URL
    )
    error_message = "worker does not know its queue, its address and the account it is called as."
  }

  assert {
    condition     = { for name, f in module.function : name => f.environment.BIGTABLE_APP_PROFILE if try(f.environment.BIGTABLE_APP_PROFILE, "processing") != "processing" } == { imports = "batch", worker = "batch" }
    error_message = "Imports and the worker should be behind everything else, and nothing else should."
  }

  assert {
    condition     = alltrue([for name, f in module.function : f.environment.BIGTABLE_SERVING_APP_PROFILE == "serving" if name != "docs"])
    error_message = "A function reads stored profiles another way than by serving."
  }
}

# Who may do what, as README.md has it. Each line is a promise; a grant more is a
# failure too.
run "least_privilege" {
  command = plan

  assert {
    condition = { for key, g in local.table_grants : key => trimprefix(g.role, "roles/bigtable.") } == {
      "ingest/objects"           = "reader"
      "ingest/refused"           = "user"
      "imports/objects"          = "reader"
      "imports/events"           = "user"
      "imports/events_narrow"    = "user"
      "imports/users"            = "user"
      "profiles/events"          = "reader"
      "profiles/events_narrow"   = "reader"
      "profiles/histories"       = "reader"
      "profiles/users"           = "user"
      "strategies/events"        = "reader"
      "strategies/events_narrow" = "reader"
      "strategies/histories"     = "reader"
      "strategies/users"         = "reader"
      "catalog/objects"          = "user"
      "recomputes/events"        = "reader"
      "recomputes/events_narrow" = "reader"
      "recomputes/histories"     = "reader"
      "recomputes/users"         = "reader"
      "process/objects"          = "reader"
      "process/events"           = "user"
      "process/events_narrow"    = "user"
      "process/users"            = "user"
      "process/histories"        = "user"
      "worker/objects"           = "reader"
      "worker/events"            = "user"
      "worker/events_narrow"     = "user"
      "worker/users"             = "user"
      "worker/histories"         = "user"
    }
    error_message = "Some function may do something else: ${jsonencode({ for key, g in local.table_grants : key => g.role })}"
  }

  assert {
    condition     = alltrue([for key, g in local.table_grants : endswith(key, "/${g.table}") && startswith(g.role, "roles/bigtable.")])
    error_message = "A grant is of another table than its name says."
  }

  assert {
    condition     = toset([for key, g in local.table_grants : key if g.table == "histories" && g.role == "roles/bigtable.user"]) == toset(["process/histories", "worker/histories"])
    error_message = "Only process and worker fold."
  }

  assert {
    condition     = toset([for key, g in local.table_grants : key if startswith(g.table, "events") && g.role == "roles/bigtable.user"]) == toset(flatten([for f in ["imports", "process", "worker"] : ["${f}/events", "${f}/events_narrow"]]))
    error_message = "Only imports, process and worker write the log."
  }

  assert {
    condition     = toset([for key, g in local.table_grants : key if startswith(key, "ingest/")]) == toset(["ingest/objects", "ingest/refused"]) && local.table_grants["ingest/objects"].role == "roles/bigtable.reader"
    error_message = "ingest reads the catalog and writes what it refuses, and nothing else."
  }

  assert {
    condition     = toset([for key in keys(local.table_grants) : key if startswith(key, "catalog/")]) == toset(["catalog/objects"])
    error_message = "The catalog is all that catalog may touch."
  }

  assert {
    condition     = toset(keys(module.function["docs"].environment)) == toset(["GOOGLE_CLOUD_PROJECT"]) && alltrue([for granted in [local.table_grants, local.users, local.viewers, local.publishers, local.enqueuers] : alltrue([for key in keys(granted) : !startswith(key, "docs")])])
    error_message = "docs describes the API and must not touch anything."
  }

  assert {
    condition     = toset(keys(local.users)) == toset(["strategies", "catalog", "recomputes", "worker"]) && length(setintersection(keys(local.users), keys(local.viewers))) == 0
    error_message = "Only strategies, catalog, recomputes and worker change the configuration: ${join(", ", keys(local.users))}"
  }

  assert {
    condition     = toset(keys(local.publishers)) == toset(["ingest", "process", "worker"]) && keys(local.buriers) == ["process"]
    error_message = "Only ingest, process and worker publish events, and only process buries them."
  }

  assert {
    condition     = toset(keys(local.enqueuers)) == toset(["profiles", "strategies", "recomputes", "worker"])
    error_message = "Only who orders tasks may: ${join(", ", keys(local.enqueuers))}"
  }
}
