import base64, hashlib, hmac, urllib.parse

def secured_key(parent, user, valid_until):
    parameters = urllib.parse.urlencode({"userToken": user, "validUntil": valid_until})
    mac = hmac.new(parent.encode(), parameters.encode(), hashlib.sha256).hexdigest()
    return base64.b64encode((mac + parameters).encode()).decode()
