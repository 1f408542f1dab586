# The key that encrypts the texts of parents, of which customers' servers make
# secured keys. Google never deletes a key ring, so none is created unless asked for. The
# next deployment in the project needs another generation.
resource "google_kms_key_ring" "affinity" {
  count = var.secured_keys ? 1 : 0

  name     = "affinity${local.generation}"
  location = var.region

  depends_on = [google_project_service.kms]
}

resource "google_project_service" "kms" {
  count = var.secured_keys ? 1 : 0

  service            = "cloudkms.googleapis.com"
  disable_on_destroy = false

  depends_on = [google_storage_bucket_object.applied]
}

resource "google_kms_crypto_key" "parents" {
  count = var.secured_keys ? 1 : 0

  name            = "parents"
  key_ring        = google_kms_key_ring.affinity[0].id
  rotation_period = "7776000s" # 90 days; earlier versions go on decrypting

  # Without the key Terraform would also destroy the versions, and so every parent.
  deletion_policy = var.deletion_protection ? "PREVENT" : "DELETE"
}

# The functions that check secured keys are those that read the key's name.
resource "google_kms_crypto_key_iam_member" "decrypter" {
  for_each = { for key, d in local.deployed : key => local.members[key] if var.secured_keys && contains(local.functions[d.of].env, "PARENTS_KMS_KEY") }

  crypto_key_id = google_kms_crypto_key.parents[0].id
  role          = "roles/cloudkms.cryptoKeyDecrypter"
  member        = each.value
}

resource "google_kms_crypto_key_iam_member" "encrypter" {
  for_each = toset(var.secured_keys ? var.parents_admins : [])

  crypto_key_id = google_kms_crypto_key.parents[0].id
  role          = "roles/cloudkms.cryptoKeyEncrypter"
  member        = each.value
}
