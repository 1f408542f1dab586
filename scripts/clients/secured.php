<?php
function secured_key(string $parent, string $user, int $validUntil): string {
    $parameters = http_build_query(['userToken' => $user, 'validUntil' => $validUntil]);
    return base64_encode(hash_hmac('sha256', $parameters, $parent) . $parameters);
}
