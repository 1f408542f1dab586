# With only a project id: the whole engine, at the lowest cost.

mock_provider "google" {
  source = "./tests/mocks"
}

variables {
  project_id = "affinity-test"
  source_dir = null # the tests have no zips
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
    condition     = toset(keys(module.function)) == toset(concat([for f in jsondecode(file("functions.json")).functions : f.name if f.name != "console"], ["process-slow"]))
    error_message = "The deployed functions are not those of functions.json, without the console, and process-slow: ${join(", ", keys(module.function))}"
  }

  assert {
    condition     = toset(keys(local.sizes)) == toset(concat(keys(local.functions), ["process-slow", "console"])) && toset(keys(local.access)) == toset(concat(keys(local.functions), ["console"]))
    error_message = "sizes.tf or access.tf has other functions than functions.json."
  }

  assert {
    condition     = alltrue([for name, f in local.functions : sort(keys(module.function[name].environment)) == sort(concat(f.env, ["FUNCTION_TARGET", "GOMEMLIMIT"]))])
    error_message = "A function does not get exactly the variables that it reads, and its memory limit."
  }

  assert {
    condition     = alltrue([for f in module.function : length(f.secrets) == 0]) && length(google_project_service.secrets) == 0
    error_message = "A function gets a secret although nobody named one."
  }

  assert {
    condition     = length(output.warehouse_datasets) == 0 && local.environment.PUBSUB_WAREHOUSE_TOPIC == ""
    error_message = "Events are written to BigQuery although nobody asked for it."
  }

  assert {
    condition     = output.archive_bucket == null
    error_message = "Events are archived although nobody asked for it."
  }

  assert {
    condition     = length(google_kms_key_ring.affinity) == 0 && output.parents_kms_key == null && module.function["ingest"].environment.PARENTS_KMS_KEY == ""
    error_message = "A key ring is created without secured_keys."
  }

  assert {
    condition     = alltrue([for name, f in local.functions : module.function[name].ingress == (f.kind == "public" ? "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER" : "INGRESS_TRAFFIC_INTERNAL_ONLY")])
    error_message = "A private function can be reached from outside, or a public one cannot."
  }

  assert {
    condition     = alltrue([for s in values(local.size) : s.min_instances == 0])
    error_message = "An instance stays warm by default."
  }

  assert {
    condition     = length(module.edge) == 0 && output.endpoint == null && strcontains(output.next_steps, "set default_host")
    error_message = "There is a load balancer without a host, or the next steps do not ask for a host."
  }

  assert {
    condition     = keys(module.tasks.schedules) == ["affinity-nightly"]
    error_message = "There is not exactly one nightly round, the common one: ${join(", ", keys(module.tasks.schedules))}"
  }

  assert {
    condition     = output.bigtable == { instance = "affinity", primary_cluster = "cluster-1" }
    error_message = "The default instance does not have the one cluster cluster-1."
  }

  # A caller waits longer than the function runs.
  assert {
    condition     = local.size["process"].timeout_seconds == 540 && module.events.ack_deadline_seconds == 570 && local.size["worker"].timeout_seconds == 600
    error_message = "Pub/Sub waits ${module.events.ack_deadline_seconds} s for process, which may take ${local.size["process"].timeout_seconds} s."
  }

  assert {
    condition     = module.firestore.expiring == { backtests = "expiresAt", crowds = "expiresAt", dateRows = "expiresAt", linkPreviews = "expiresAt", migrations = "expiresAt", moves = "expiresAt", recomputes = "expiresAt", reenrichments = "expiresAt", reports = "expiresAt", residents = "expiresAt", segmentBuilds = "expiresAt", segmentExports = "expiresAt", shards = "expiresAt" }
    error_message = "The collections that expire are not those of jobs and shards: ${jsonencode(module.firestore.expiring)}"
  }

  # The place of a job counts jobs of all kinds.
  assert {
    condition     = toset(module.firestore.queued) == setsubtract(keys(module.firestore.expiring), ["shards"])
    error_message = "The collections with an index of queued jobs are not those of jobs: ${join(", ", module.firestore.queued)}"
  }
}

run "apply" {
  assert {
    condition     = alltrue([for key, g in local.table_grants : g.member == module.function[split("/", key)[0]].service_account_member])
    error_message = "A grant is for another function than its key names."
  }

  assert {
    condition     = alltrue([for name, f in local.functions : module.function[name].invokers == tolist(["everyone"]) if f.kind == "public"])
    error_message = "The load balancer cannot call every public function."
  }

  assert {
    condition     = alltrue([for name in ["process", "process-slow"] : module.function[name].invokers == tolist(["serviceAccount:push-events@affinity-test.iam.gserviceaccount.com"])])
    error_message = "The only caller of process is not Pub/Sub: ${join(", ", module.function["process"].invokers)}"
  }

  assert {
    condition     = module.function["worker"].invokers == tolist(["serviceAccount:call-nightly@affinity-test.iam.gserviceaccount.com", "serviceAccount:call-tasks@affinity-test.iam.gserviceaccount.com"])
    error_message = "The callers of worker are not Cloud Tasks and Cloud Scheduler: ${join(", ", module.function["worker"].invokers)}"
  }

  assert {
    condition = (
      module.function["worker"].environment.TASKS_SERVICE_ACCOUNT == "call-tasks@affinity-test.iam.gserviceaccount.com" &&
      module.function["worker"].environment.TASKS_QUEUE == "projects/affinity-test/locations/europe-west1/queues/worker" &&
      module.function["worker"].environment.WORKER_URL == "https://worker-123456789012.europe-west1.run.app" &&
      module.function["worker"].environment.TASKS_AUDIENCE == module.function["worker"].environment.WORKER_URL
    )
    error_message = "worker has a wrong queue, URL, audience or account."
  }

  assert {
    condition     = { for name, f in module.function : name => f.environment.BIGTABLE_APP_PROFILE if try(f.environment.BIGTABLE_APP_PROFILE, "processing") != "processing" } == { imports = "batch", worker = "batch" }
    error_message = "The functions with the app profile batch are not imports and worker."
  }

  assert {
    condition     = alltrue([for name, f in module.function : f.environment.BIGTABLE_SERVING_APP_PROFILE == "serving" if name != "docs"])
    error_message = "A function does not read stored profiles by the app profile serving."
  }

  assert {
    condition     = alltrue([for name, f in module.function : f.environment.BIGTABLE_ANALYSIS_APP_PROFILE == "" if name != "docs"])
    error_message = "A function uses Data Boost although nobody asked for it."
  }
}

# One image for each zip, and a build that reaches nothing else.
run "images" {
  command = plan

  assert {
    condition     = toset(keys(module.image)) == toset(keys(local.functions)) && module.function["process-slow"].image == module.function["process"].image && module.function["process"].image == module.image["process"].function.image
    error_message = "A service does not run the image of its function: ${jsonencode({ for key, f in module.function : key => f.image })}"
  }

  assert {
    condition     = google_project_iam_member.build.role == "roles/logging.logWriter" && google_storage_bucket_iam_member.build.bucket == "affinity-test-affinity-source" && google_artifact_registry_repository_iam_member.build.repository == google_artifact_registry_repository.images.name
    error_message = "The account that builds may do more than read the source and write the image and logs."
  }

  assert {
    condition     = !contains(keys(google_project_service.this), "cloudfunctions.googleapis.com")
    error_message = "Cloud Functions is switched on, which nothing uses."
  }
}

run "urls_are_not_logged" {
  command = plan

  assert {
    condition     = strcontains(google_logging_project_exclusion.urls.filter, "x-algolia-api-key")
    error_message = "Request logs with keys are kept: ${google_logging_project_exclusion.urls.filter}"
  }
}

# By default no request that succeeded quickly is in the log, and every message is.
run "healthy_requests_are_not_logged" {
  command = plan

  assert {
    condition     = { for name, e in google_logging_project_exclusion.healthy : e.name => e.filter } == { affinity-healthy-reads = local.healthy_reads, affinity-healthy-requests = local.healthy_requests }
    error_message = "The exclusions are wrong: ${jsonencode(google_logging_project_exclusion.healthy)}"
  }
}

# The access of each function, as functions/docs/operate/access.md lists it. A grant that is missing here fails
# the test too.
run "least_privilege" {
  command = plan

  assert {
    condition = { for key, g in local.table_grants : key => trimprefix(g.role, "roles/bigtable.") } == {
      "ingest/objects"             = "reader"
      "ingest/users"               = "reader"
      "ingest/refused"             = "user"
      "ingest/usage"               = "user"
      "ingest/rates"               = "user"
      "ingest/locations"           = "user"
      "imports/objects"            = "reader"
      "imports/events"             = "user"
      "imports/events_narrow"      = "user"
      "imports/users"              = "user"
      "imports/calls"              = "user"
      "imports/changes"            = "user"
      "imports/crowd"              = "user"
      "imports/refused"            = "user"
      "imports/usage"              = "user"
      "imports/rates"              = "user"
      "imports/audit_log"          = "user"
      "imports/locations"          = "user"
      "profiles/objects"           = "reader"
      "profiles/events"            = "reader"
      "profiles/events_narrow"     = "reader"
      "profiles/histories"         = "reader"
      "profiles/dictionaries"      = "reader"
      "profiles/recent"            = "reader"
      "profiles/refused"           = "reader"
      "profiles/users"             = "user"
      "profiles/changes"           = "user"
      "profiles/usage"             = "user"
      "profiles/audit_log"         = "user"
      "profiles/rates"             = "user"
      "profiles/locations"         = "user"
      "rank/objects"               = "reader"
      "rank/dated"                 = "reader"
      "rank/crowd"                 = "reader"
      "rank/events"                = "reader"
      "rank/events_narrow"         = "reader"
      "rank/histories"             = "reader"
      "rank/dictionaries"          = "reader"
      "rank/users"                 = "user"
      "rank/usage"                 = "user"
      "rank/audit_log"             = "user"
      "rank/jobs"                  = "user"
      "rank/rates"                 = "user"
      "rank/locations"             = "reader"
      "strategies/objects"         = "reader"
      "strategies/events"          = "reader"
      "strategies/events_narrow"   = "reader"
      "strategies/histories"       = "reader"
      "strategies/dictionaries"    = "reader"
      "strategies/users"           = "reader"
      "strategies/usage"           = "user"
      "strategies/audit_log"       = "user"
      "strategies/jobs"            = "user"
      "strategies/rates"           = "user"
      "strategies/locations"       = "reader"
      "catalog/objects"            = "user"
      "catalog/dated"              = "user"
      "catalog/crowd"              = "user"
      "catalog/usage"              = "user"
      "catalog/audit_log"          = "user"
      "catalog/rates"              = "user"
      "admin/objects"              = "reader"
      "admin/calls"                = "reader"
      "admin/crowd"                = "reader"
      "admin/events"               = "reader"
      "admin/events_narrow"        = "reader"
      "admin/histories"            = "reader"
      "admin/dictionaries"         = "reader"
      "admin/users"                = "user"
      "admin/changes"              = "user"
      "admin/segments"             = "reader"
      "admin/usage"                = "user"
      "admin/audit_log"            = "user"
      "admin/jobs"                 = "user"
      "admin/rates"                = "user"
      "admin/locations"            = "reader"
      "segments/events"            = "reader"
      "segments/events_narrow"     = "reader"
      "segments/histories"         = "reader"
      "segments/dictionaries"      = "reader"
      "segments/users"             = "user"
      "segments/changes"           = "reader"
      "segments/segments"          = "user"
      "segments/usage"             = "user"
      "segments/audit_log"         = "user"
      "segments/jobs"              = "user"
      "segments/rates"             = "user"
      "segments/locations"         = "reader"
      "process/objects"            = "reader"
      "process/dictionaries"       = "reader"
      "process/events"             = "user"
      "process/events_narrow"      = "user"
      "process/users"              = "user"
      "process/calls"              = "user"
      "process/changes"            = "user"
      "process/histories"          = "user"
      "process/refused"            = "user"
      "process/usage"              = "user"
      "process/rates"              = "user"
      "process/recent"             = "user"
      "process/locations"          = "user"
      "worker/objects"             = "user"
      "worker/dated"               = "user"
      "worker/events"              = "user"
      "worker/events_narrow"       = "user"
      "worker/users"               = "user"
      "worker/calls"               = "user"
      "worker/changes"             = "user"
      "worker/histories"           = "user"
      "worker/dictionaries"        = "user"
      "worker/crowd"               = "user"
      "worker/refused"             = "user"
      "worker/usage"               = "user"
      "worker/rates"               = "user"
      "worker/segments"            = "user"
      "worker/audit_log"           = "user"
      "worker/jobs"                = "user"
      "worker/recent"              = "user"
      "worker/locations"           = "user"
      "process-slow/objects"       = "reader"
      "process-slow/dictionaries"  = "reader"
      "process-slow/events"        = "user"
      "process-slow/events_narrow" = "user"
      "process-slow/users"         = "user"
      "process-slow/calls"         = "user"
      "process-slow/changes"       = "user"
      "process-slow/histories"     = "user"
      "process-slow/refused"       = "user"
      "process-slow/usage"         = "user"
      "process-slow/rates"         = "user"
      "process-slow/recent"        = "user"
      "process-slow/locations"     = "user"
    }
    error_message = "A function has other access than functions/docs/operate/access.md lists: ${jsonencode({ for key, g in local.table_grants : key => g.role })}"
  }

  assert {
    condition     = alltrue([for key, g in local.table_grants : endswith(key, "/${g.table}") && startswith(g.role, "roles/bigtable.")])
    error_message = "A grant is on another table than its key names."
  }

  assert {
    condition     = toset([for key, g in local.table_grants : key if g.table == "histories" && g.role == "roles/bigtable.user"]) == toset(["process/histories", "process-slow/histories", "worker/histories"])
    error_message = "The functions that may fold are not process and worker."
  }

  assert {
    condition     = toset([for key, g in local.table_grants : key if startswith(g.table, "events") && g.role == "roles/bigtable.user"]) == toset(flatten([for f in ["imports", "process", "process-slow", "worker"] : ["${f}/events", "${f}/events_narrow"]]))
    error_message = "The functions that may write the log are not imports, process and worker."
  }

  assert {
    condition     = toset([for key, g in local.table_grants : key if startswith(key, "ingest/")]) == toset(["ingest/objects", "ingest/users", "ingest/refused", "ingest/usage", "ingest/rates", "ingest/locations"]) && alltrue([for t in ["objects", "users"] : local.table_grants["ingest/${t}"].role == "roles/bigtable.reader"])
    error_message = "ingest may do more than read the catalog and users, and write refused requests, usage, rates and locations."
  }

  assert {
    condition     = toset([for key in keys(local.table_grants) : key if startswith(key, "catalog/")]) == toset(["catalog/objects", "catalog/dated", "catalog/crowd", "catalog/usage", "catalog/rates", "catalog/audit_log"])
    error_message = "catalog may access more than the catalog with its date rows, the times of loads, usage, rates and the audit log."
  }

  assert {
    condition     = toset(keys(module.function["docs"].environment)) == toset(["FUNCTION_TARGET", "GOOGLE_CLOUD_PROJECT", "GOMEMLIMIT"]) && alltrue([for granted in [local.table_grants, local.users, local.viewers, local.key_users, local.key_viewers, local.publishers, local.enqueuers] : alltrue([for key in keys(granted) : !startswith(key, "docs")])])
    error_message = "docs has access to a backend, or another variable than GOOGLE_CLOUD_PROJECT and its memory limit."
  }

  assert {
    condition     = toset(keys(local.users)) == toset(["strategies", "catalog", "rank", "admin", "segments", "worker"]) && length(setintersection(keys(local.users), keys(local.viewers))) == 0
    error_message = "The functions that may change the configuration are not strategies, catalog, rank, admin, segments and worker: ${join(", ", keys(local.users))}"
  }

  # A fault in a function that others call makes no key.
  assert {
    condition     = keys(local.key_users) == ["worker"] && toset(keys(local.key_viewers)) == toset([for name in local.public : name if name != "docs"])
    error_message = "Others than worker may change keys, or others than the public functions may read them: ${join(", ", concat(keys(local.key_users), keys(local.key_viewers)))}"
  }

  assert {
    condition     = module.keys.database == "affinity-keys" && module.firestore.database == "affinity"
    error_message = "Keys are in the database ${module.keys.database}, and the configuration in ${module.firestore.database}."
  }

  assert {
    condition     = toset(keys(local.publishers)) == toset(["ingest", "process", "process-slow", "worker"]) && keys(local.buriers) == ["process", "process-slow"]
    error_message = "The functions that may publish events are not ingest, process and worker, or process is not the only one for dead letters."
  }

  assert {
    condition     = toset(keys(local.enqueuers)) == toset(["catalog", "imports", "process", "process-slow", "profiles", "rank", "admin", "segments", "strategies", "worker"])
    error_message = "The functions that may enqueue tasks are not those that do: ${join(", ", keys(local.enqueuers))}"
  }
}

run "secured_keys" {
  command = plan

  variables {
    secured_keys   = true
    parents_admins = ["user:ann@example.com"]
  }

  assert {
    condition     = google_kms_crypto_key.parents[0].rotation_period != null && toset(keys(google_kms_crypto_key_iam_member.decrypter)) == toset(["ingest", "profiles", "rank"])
    error_message = "Others than ingest, profiles and rank decrypt parents: ${join(", ", keys(google_kms_crypto_key_iam_member.decrypter))}"
  }

  assert {
    condition     = keys(google_kms_crypto_key_iam_member.encrypter) == ["user:ann@example.com"] && alltrue([for m in google_kms_crypto_key_iam_member.encrypter : m.role == "roles/cloudkms.cryptoKeyEncrypter"])
    error_message = "The operators who may create parents may do more or less than encrypt."
  }
}
