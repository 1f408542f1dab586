-- Deletes the events of deleted users, of users who have opted out, and of deleted apps. Rows that were written just
-- now wait for the next run: BigQuery cannot delete them yet. So it may run at any time, and again.
DELETE FROM ${event_rows} e
WHERE e.written_at < CURRENT_TIMESTAMP - INTERVAL 90 MINUTE
  AND (EXISTS (
    SELECT 1 FROM ${deletions} AS d
    WHERE d.app = e.app AND d.user_token = e.user_token
      AND (e.time <= d.deleted_until OR e.received_at <= d.received_until))
  OR EXISTS (
    SELECT 1 FROM ${deletions} AS d
    WHERE d.app = e.app AND d.user_token = '' AND e.received_at <= d.received_until))
