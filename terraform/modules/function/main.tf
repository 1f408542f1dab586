locals {
  account = var.service_account == null ? google_service_account.this[0].email : var.service_account.email

  # Go's soft limit of memory: nine tenths of the instance. Near it the garbage
  # collector works harder, and requests may hold four ninths of it at a time.
  memory_mib       = try(tonumber(trimsuffix(var.memory, "Gi")) * 1024, tonumber(trimsuffix(var.memory, "Mi")), 0)
  memory_limit_mib = floor(local.memory_mib * 9 / 10)

  # The image may hold several functions, and its build names one. The variable does too, so that the service says itself
  # which one it is.
  environment = merge(
    { for v in var.variables : v => lookup(var.environment, v, "") },
    var.more_environment,
    { GOMEMLIMIT = "${local.memory_limit_mib}MiB", FUNCTION_TARGET = var.function.entry_point },
  )

  # The base image of the runtime in the region of the service.
  base_image = "${var.region}-docker.pkg.dev/serverless-runtimes/${replace(var.function.runtime, "/", "/runtimes/")}"
}

# A function in a serving region runs as that of the same name in the deployment's region.
resource "google_service_account" "this" {
  count = var.service_account == null ? 1 : 0

  account_id   = "fn-${var.name}"
  display_name = "Function ${var.name}"
}

resource "google_cloud_run_v2_service" "this" {
  name        = var.name
  location    = var.region
  description = var.description
  ingress     = var.ingress

  # The load balancer sends no identity, which Cloud Run would ask for.
  invoker_iam_disabled = var.public_access == "no_invoker_check"

  # A function holds no data.
  deletion_protection = false

  # What makes the service a Cloud Run function. The module image has built the image.
  build_config {
    function_target          = var.function.entry_point
    source_location          = var.function.source
    image_uri                = var.function.image
    base_image               = local.base_image
    enable_automatic_updates = true
    environment_variables    = var.function.environment
    service_account          = var.function.service_account
  }

  # All revisions that get requests share these instances.
  scaling {
    min_instance_count = var.min_instances
    max_instance_count = var.max_instances
  }

  template {
    service_account                  = local.account
    timeout                          = "${var.timeout_seconds}s"
    max_instance_request_concurrency = var.concurrency

    # Without a number of its own a revision has at most 100.
    scaling {
      max_instance_count = var.max_instances
    }

    containers {
      image          = var.function.image
      base_image_uri = local.base_image

      resources {
        limits            = { cpu = var.cpu, memory = var.memory }
        cpu_idle          = var.billing == "requests"
        startup_cpu_boost = true
      }

      # An instance gets requests once it has opened its backends. A revision with wrong settings
      # never does, and the apply fails while the old revision serves.
      startup_probe {
        period_seconds    = 2
        timeout_seconds   = 2
        failure_threshold = 30

        http_get {
          path = "/ready"
        }
      }

      # Cloud Run counts the ready instances of a region, and the load balancer leaves a region out
      # with too few of them.
      dynamic "readiness_probe" {
        for_each = var.readiness ? [1] : []

        content {
          period_seconds    = 10
          timeout_seconds   = 2
          failure_threshold = 3
          success_threshold = 1

          http_get {
            path = "/ready"
          }
        }
      }

      dynamic "env" {
        for_each = local.environment

        content {
          name  = env.key
          value = env.value
        }
      }

      dynamic "env" {
        for_each = var.secrets

        content {
          name = env.key

          value_source {
            secret_key_ref {
              secret  = env.value
              version = lookup(var.secret_versions, env.key, "latest")
            }
          }
        }
      }
    }
  }

  dynamic "traffic" {
    for_each = var.traffic.latest > 0 ? [var.traffic.latest] : []

    content {
      type    = "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST"
      percent = traffic.value
    }
  }

  dynamic "traffic" {
    for_each = var.traffic.latest < 100 ? [var.traffic.revision] : []

    content {
      type     = "TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION"
      revision = traffic.value
      percent  = 100 - var.traffic.latest
    }
  }

  # A revision does not start before its account may read its secrets.
  depends_on = [google_secret_manager_secret_iam_member.reader]

  lifecycle {
    # gcloud and the console write their names here.
    ignore_changes = [client, client_version]

    precondition {
      condition     = length(setsubtract(var.variables, keys(var.environment))) == 0
      error_message = "Function ${var.name} reads variables that the deployment does not set: ${join(", ", setsubtract(var.variables, keys(var.environment)))}."
    }
  }
}

resource "google_secret_manager_secret_iam_member" "reader" {
  for_each = var.service_account == null ? var.secrets : {}

  project   = var.project_id
  secret_id = each.value
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.this[0].member
}

resource "google_cloud_run_v2_service_iam_member" "invoker" {
  for_each = merge(var.invokers, var.public_access == "all_users" ? { all = "allUsers" } : {})

  location = google_cloud_run_v2_service.this.location
  name     = google_cloud_run_v2_service.this.name
  role     = "roles/run.invoker"
  member   = each.value
}
