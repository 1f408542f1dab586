# The client library pings the instance on each new connection, and fails without the
# permission. A grant on a table does not include it.
resource "google_project_iam_custom_role" "connect" {
  role_id     = join("_", compact([replace(var.instance_name, "-", "_"), "bigtable_connect", var.role_ending]))
  title       = "Connect to the Bigtable instance ${var.instance_name}"
  description = "Opens connections, without reading or writing anything."
  permissions = ["bigtable.instances.ping"]
}

resource "google_bigtable_instance_iam_member" "connect" {
  for_each = var.clients

  instance = google_bigtable_instance.this.name
  role     = "projects/${var.project_id}/roles/${google_project_iam_custom_role.connect.role_id}"
  member   = each.value
}

resource "google_bigtable_table_iam_member" "data" {
  for_each = merge([for ending in local.endings : { for label, g in var.grants : "${label}${ending}" => merge(g, { table = "${g.table}${ending}" }) }]...)

  instance_name = google_bigtable_instance.this.name
  table         = google_bigtable_table.this[each.value.table].name
  role          = each.value.role
  member        = each.value.member
}
