# Where functions send traces and metrics besides Google's own, see
# functions/docs/operate/logs-and-metrics.md.
variable "telemetry" {
  description = "OpenTelemetry's variables of all functions by name, such as OTEL_EXPORTER_OTLP_ENDPOINT, and the id of a secret of the project that holds OTEL_EXPORTER_OTLP_HEADERS. Default: functions export nothing."
  type = object({
    variables      = optional(map(string), {})
    headers_secret = optional(string)
  })
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for name in keys(var.telemetry.variables) : can(regex("^OTEL_[A-Z0-9_]+$", name))])
    error_message = "telemetry.variables names a variable that is not OpenTelemetry's: ${join(", ", [for name in keys(var.telemetry.variables) : name if !can(regex("^OTEL_[A-Z0-9_]+$", name))])}. All begin with OTEL_."
  }

  validation {
    condition     = alltrue([for name in keys(var.telemetry.variables) : !endswith(name, "_HEADERS")])
    error_message = "telemetry.variables holds headers, which hold a key: put them into a secret, and its id into telemetry.headers_secret."
  }

  validation {
    condition     = var.telemetry.headers_secret == null || length(var.telemetry.variables) > 0
    error_message = "telemetry.headers_secret is of no use without telemetry.variables: set OTEL_EXPORTER_OTLP_ENDPOINT there."
  }
}

resource "google_project_service" "secrets" {
  count = var.telemetry.headers_secret == null && var.console_host == null && var.location_secret == "" ? 0 : 1

  service            = "secretmanager.googleapis.com"
  disable_on_destroy = false

  depends_on = [terraform_data.project]
}

locals {
  # The engine's own exporter google sends spans to Cloud Trace, as the function's account.
  cloud_trace = lookup(var.telemetry.variables, "OTEL_TRACES_EXPORTER", "") == "google"
}

resource "google_project_service" "traces" {
  for_each = toset(local.cloud_trace ? ["cloudtrace.googleapis.com", "telemetry.googleapis.com"] : [])

  service            = each.value
  disable_on_destroy = false

  depends_on = [terraform_data.project]
}

resource "google_project_iam_member" "traces" {
  for_each = local.cloud_trace ? local.members : {}

  project = var.project_id
  role    = "roles/telemetry.tracesWriter"
  member  = each.value
}
