resource "google_certificate_manager_dns_authorization" "this" {
  for_each = local.hosts

  name        = each.value
  description = "Proves that ${each.key} is ours, before it points here."
  domain      = each.key
  labels      = var.labels
}

resource "google_certificate_manager_certificate" "this" {
  for_each = local.hosts

  name        = each.value
  description = "Of ${each.key}, made and renewed by Google."
  labels      = var.labels

  managed {
    domains            = [each.key]
    dns_authorizations = [google_certificate_manager_dns_authorization.this[each.key].id]
  }
}

resource "google_certificate_manager_certificate_map" "this" {
  name        = "${var.name_prefix}-edge"
  description = "The certificate of each host."
  labels      = var.labels
}

resource "google_certificate_manager_certificate_map_entry" "this" {
  for_each = local.hosts

  name         = each.value
  map          = google_certificate_manager_certificate_map.this.name
  hostname     = each.key
  certificates = [google_certificate_manager_certificate.this[each.key].id]
  labels       = var.labels
}
