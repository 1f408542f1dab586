output "database" {
  description = "The database's name."
  value       = google_firestore_database.this.name
}

output "expiring" {
  description = "The field by collection after which a document goes."
  value       = { for f in google_firestore_field.expiring : f.collection => f.field }
}
