locals {
  # The records of each host: its addresses, and the proof of ownership for its certificate.
  records = { for host in keys(local.hosts) : host => [
    { name = "${host}.", type = "A", data = google_compute_global_address.this.address },
    { name = "${host}.", type = "AAAA", data = google_compute_global_address.ipv6.address },
    {
      name = try(google_certificate_manager_dns_authorization.this[host].dns_resource_record[0].name, null)
      type = try(google_certificate_manager_dns_authorization.this[host].dns_resource_record[0].type, null)
      data = try(google_certificate_manager_dns_authorization.this[host].dns_resource_record[0].data, null)
    },
  ] }

  # The hosts of the zone. Others have their records elsewhere.
  zone_hosts = [for host in keys(local.hosts) : host if var.dns_zone != null && try(host == var.dns_zone.domain || endswith(host, ".${var.dns_zone.domain}"), false)]
}

resource "google_dns_record_set" "this" {
  for_each = merge([for host in local.zone_hosts : { for i, kind in ["address", "ipv6", "proof"] : "${host}/${kind}" => { host = host, i = i } }]...)

  project      = var.dns_zone.project
  managed_zone = var.dns_zone.name
  name         = local.records[each.value.host][each.value.i].name
  type         = local.records[each.value.host][each.value.i].type
  ttl          = 300
  rrdatas      = [local.records[each.value.host][each.value.i].data]
}
